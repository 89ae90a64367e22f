import { Readable } from 'node:stream';
import { strToU8, Zip, ZipDeflate, ZipPassThrough } from 'fflate';
import type { Account, Accounts } from '../../../accounts/accounts.ts';
import type { AuditLog } from '../../../accounts/audit.ts';
import type { Ledger } from '../../../billing/ledger.ts';
import { isoTime } from '../../../billing/present.ts';
import type { Improve } from '../../../improve/improve.ts';
import type { Context } from '../../context.ts';
import type { Route } from '../../router.ts';
import { accountIdOf, actorOf, type Endpoints } from './access.ts';
import { imageInfo } from './images.ts';
import { keyInfos } from './keys.ts';
import { entryInfo, statementCsv } from './statement.ts';

export interface ExportParts {
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly improve: Improve;
  readonly audit: AuditLog;
}

/**
 * Everything stored about an account as a ZIP: `account.json`, `statement.csv` and the images handed in. One
 * image is in memory at a time.
 */
async function exportArchive(
  account: Account,
  { accounts, ledger, improve }: ExportParts,
): Promise<Readable> {
  const images = await improve.list({ accountId: account.id });
  const entries = await ledger.statementNewestFirst(account.id);
  const { id, name, email, createdAt } = account;
  const facts = {
    account: { id, name, email, createdAt: isoTime(createdAt) },
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

/** `GET export`: the data of the account that is signed in. */
export function exportRoutes(parts: ExportParts, { owner }: Endpoints): Route[] {
  const download = async (ctx: Context) => {
    const { id: actor, address } = actorOf(ctx);
    await parts.audit.write({ action: 'data.export', actor, address });
    ctx.attachment('cutout-data.zip');
    ctx.type = 'application/zip';
    return exportArchive(await parts.accounts.get(accountIdOf(ctx)), parts);
  };
  return [owner.get('export', download)];
}
