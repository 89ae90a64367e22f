import { Readable } from 'node:stream';
import { strToU8, Zip, ZipDeflate, ZipPassThrough } from 'fflate';
import type { Account } from '../../../accounts/accounts.ts';
import type { Entry } from '../../../billing/entries.ts';
import { isoTime } from '../../../billing/present.ts';
import type { HandedIn, Improve } from '../../../improve/improve.ts';
import type { Context } from '../../context.ts';
import { ownTurn } from '../../eventLoop.ts';
import type { Route } from '../../router.ts';
import { accountIdOf, actorOf, type ConsoleParts, type Endpoints } from './access.ts';
import { imageInfo } from './images.ts';
import { keyInfos } from './keys.ts';
import { entryInfo, statementCsv, statementPages } from './statement.ts';

/** The lines of a JSON array of an object at the top level, without its brackets. */
const jsonItems = (items: readonly unknown[]): string =>
  items.map((item) => JSON.stringify(item, undefined, 2).replaceAll(/^/gm, '    ')).join(',\n');

const imagesAtATime = 200;

/** Bytes of an image that are in memory while the reader takes them. */
const pieceBytes = 2 ** 18;

/** The images handed in, newest first, page by page. */
async function* imagePages(improve: Improve, accountId: string): AsyncGenerator<readonly HandedIn[]> {
  let before: HandedIn | undefined;
  for (;;) {
    await ownTurn();
    const images = await improve.page(accountId, { before, limit: imagesAtATime });
    yield images;
    before = images.at(-1);
    if (images.length < imagesAtATime) return;
  }
}

/** A member of a JSON object at its top level: an array, written page by page. */
async function* jsonArray<Row>(
  name: string,
  pages: AsyncIterable<readonly Row[]>,
  present: (row: Row) => unknown,
): AsyncGenerator<string> {
  let before = `,\n  ${JSON.stringify(name)}: [\n`;
  for await (const rows of pages) {
    if (rows.length === 0 && before === ',\n') break;
    yield before + jsonItems(rows.map(present));
    before = ',\n';
  }
  yield '\n  ]';
}

/** `{ …facts, "statement": […], "images": […] }`, indented, without holding the arrays. */
async function* accountJson(
  facts: object,
  statement: AsyncIterable<readonly Entry[]>,
  images: AsyncIterable<readonly HandedIn[]>,
): AsyncGenerator<string> {
  yield JSON.stringify(facts, undefined, 2).slice(0, -2);
  yield* jsonArray('statement', statement, entryInfo);
  yield* jsonArray('images', images, imageInfo);
  yield '\n}\n';
}

/**
 * Everything stored about an account as a ZIP: `account.json`, `statement.csv` and the images handed in. A
 * piece of an image, or one page of the statement, is in memory at a time; nothing is made before the reader has taken what was.
 */
async function exportArchive(
  account: Account,
  { stores: { accounts, ledger }, improve }: ConsoleParts,
): Promise<Readable> {
  const { id, name, email, createdAt } = account;
  // Both files have the entries up to now.
  const [newest] = await ledger.statementNewestFirst(id, { limit: 1 });
  const pages = () => statementPages(ledger, id, { before: (newest?.id ?? 0) + 1 });
  const facts = {
    account: { id, name, email, createdAt: isoTime(createdAt) },
    keys: keyInfos(await accounts.keys(id)),
  };
  const chunks: Uint8Array[] = [];
  let failed: Error | undefined;
  const zip = new Zip((error, chunk) => {
    if (error) failed = error;
    else chunks.push(chunk);
  });
  function* drain() {
    if (failed) throw failed;
    yield* chunks.splice(0);
  }
  async function* pack(path: string, texts: AsyncIterable<string>) {
    const file = new ZipDeflate(path, { level: 6 });
    zip.add(file);
    for await (const text of texts) {
      file.push(strToU8(text));
      yield* drain();
    }
    file.push(new Uint8Array(), true);
    yield* drain();
  }
  async function* parts(): AsyncGenerator<Uint8Array> {
    const images = () => imagePages(improve, id);
    yield* pack('account.json', accountJson(facts, pages(), images()));
    yield* pack('statement.csv', statementCsv(pages()));
    for await (const page of images())
      for (const image of page) {
        let piece = await improve.bytes(image, 0, pieceBytes);
        if (!piece) continue;
        // Images are compressed already.
        const file = new ZipPassThrough(`images/${image.id}.${image.type}`);
        zip.add(file);
        for (let to = pieceBytes; ; to += pieceBytes) {
          file.push(piece, to >= image.bytes);
          yield* drain();
          if (to >= image.bytes) break;
          piece = await improve.bytes(image, to, to + pieceBytes);
          if (!piece) throw new Error('An image was deleted while it was exported.');
        }
      }
    zip.end();
    yield* drain();
  }
  return Readable.from(parts());
}

/** `GET export`: the data of the account that is signed in. */
export function exportRoutes(parts: ConsoleParts, { owner }: Endpoints): Route[] {
  const download = async (ctx: Context) => {
    const { id: actor, address } = actorOf(ctx);
    await parts.stores.audit.write({ action: 'data.export', actor, address });
    ctx.attachment('cutout-data.zip');
    ctx.type = 'application/zip';
    return exportArchive(await parts.stores.accounts.get(accountIdOf(ctx)), parts);
  };
  return [owner.get('export', download)];
}
