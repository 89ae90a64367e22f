import { Readable } from 'node:stream';
import { strToU8, Zip, ZipDeflate, ZipPassThrough } from 'fflate';
import type { Account, Accounts } from '../../../accounts/accounts.ts';
import { csv } from '../../../billing/csv.ts';
import type { Entry } from '../../../billing/entries.ts';
import type { Ledger } from '../../../billing/ledger.ts';
import { entryRow } from '../../../billing/present.ts';
import type { Improve } from '../../../improve/improve.ts';
import { entryInfo, imageInfo, keyInfos } from './present.ts';

export interface ExportParts {
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly improve: Improve;
}

/** A statement as CSV, with a head line. */
export function statementCsv(entries: readonly Entry[]): string {
  const rows = entries.map(entryRow);
  const columns = [
    'id',
    'time',
    'kind',
    'amount',
    'balance',
    'payment',
    'reservation',
    'request',
    'reference',
    'note',
  ];
  return csv([columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))]);
}

/**
 * Everything kept about an account as a ZIP: `account.json`, `statement.csv` and the images handed in. One image is in
 * memory at a time.
 */
export async function exportArchive(
  account: Account,
  { accounts, ledger, improve }: ExportParts,
): Promise<Readable> {
  const images = await improve.list({ accountId: account.id });
  const entries = await ledger.history(account.id);
  const { id, name, email, createdAt } = account;
  const facts = {
    account: { id, name, email, createdAt: new Date(createdAt).toISOString() },
    keys: keyInfos(await accounts.keys(id)),
    statement: entries.map(entryInfo),
    images: images.map(imageInfo),
  };
  const chunks: Uint8Array[] = [];
  let failed: Error | undefined;
  const zip = new Zip((error, chunk) => {
    if (error) failed = error;
    else chunks.push(chunk);
  });
  const add = (path: string, bytes: Uint8Array, packed: boolean) => {
    // Images are compressed already.
    const file = packed ? new ZipPassThrough(path) : new ZipDeflate(path, { level: 6 });
    zip.add(file);
    file.push(bytes, true);
  };
  async function* parts(): AsyncGenerator<Uint8Array> {
    const drain = function* () {
      if (failed) throw failed;
      yield* chunks.splice(0);
    };
    add('account.json', strToU8(`${JSON.stringify(facts, undefined, 2)}\n`), false);
    add('statement.csv', strToU8(statementCsv(entries)), false);
    yield* drain();
    for (const image of images) {
      const bytes = await improve.bytes(image);
      if (bytes) add(`images/${image.id}.${image.type}`, bytes, true);
      yield* drain();
    }
    zip.end();
    yield* drain();
  }
  return Readable.from(parts());
}
