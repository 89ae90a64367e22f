import { Readable } from 'node:stream';
import { z } from 'zod';
import { type Entry, type NewestFirstPage, scoreOf } from '../../../billing/entries.ts';
import type { Ledger } from '../../../billing/ledger.ts';
import { csv, entryRow, isoTime } from '../../../billing/present.ts';
import { toCredits } from '../../../billing/price.ts';
import type { Context } from '../../context.ts';
import { ownTurn } from '../../eventLoop.ts';
import { parse, time } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import { accountIdOf, type ConsoleParts, type Endpoints } from './access.ts';
import type { Page, StatementEntry } from './api.ts';
import { numberedPage, numberOf, readPage } from './page.ts';

const filter = z.object({
  kind: z.enum(['grant', 'purchase', 'reserve', 'settle', 'release', 'refund', 'adjust']).optional(),
  from: time.optional(),
  to: time.optional(),
});
const page = filter.extend(numberedPage.shape);

export const entryInfo = (entry: Entry): StatementEntry => ({
  id: entry.id,
  at: isoTime(entry.at),
  kind: entry.kind,
  amount: toCredits(entry.amount),
  balance: toCredits(entry.balance),
  payment: entry.payment,
  request: entry.requestId,
  note: entry.note,
  uncertainty: scoreOf(entry),
});

/** The names of the values of `entryRow`, in their order. */
const csvHeader = 'id,time,kind,amount,balance,payment,reservation,request,reference,note,uncertainty\r\n';

const csvRows = (entries: readonly Entry[]) =>
  csv(entries.map((entry) => Object.values(entryRow(entry)).map((value) => String(value ?? ''))));

/** Entries that are read and written in one turn of the event loop: some milliseconds. */
const entriesAtATime = 200;

/** Every match, newest first, each page in a turn of its own: there may be millions. At least one page, maybe empty. */
export async function* statementPages(
  ledger: Pick<Ledger, 'statementNewestFirst'>,
  accountId: string,
  wanted: Omit<NewestFirstPage, 'limit'> = {},
): AsyncGenerator<readonly Entry[]> {
  let { before } = wanted;
  for (;;) {
    await ownTurn();
    const page = { ...wanted, before, limit: entriesAtATime };
    const entries = await ledger.statementNewestFirst(accountId, page);
    yield entries;
    if (entries.length < entriesAtATime) return;
    before = entries.at(-1)?.id;
  }
}

/** A statement as CSV, with a header row. */
export async function* statementCsv(pages: AsyncIterable<readonly Entry[]>): AsyncGenerator<string> {
  let head = csvHeader;
  for await (const entries of pages) {
    yield head + csvRows(entries);
    head = '';
  }
}

/** The account's ledger entries, newest first: page by page, or all as a file. */
export function statementRoutes({ stores: { ledger } }: ConsoleParts, { owner }: Endpoints): Route[] {
  const statement = (ctx: Context): Promise<Page<StatementEntry>> => {
    const { limit, ...wanted } = parse(page, ctx.query);
    const read = (most: number) => ledger.statementNewestFirst(accountIdOf(ctx), { ...wanted, limit: most });
    return readPage(limit, read, numberOf, entryInfo);
  };
  const download = async (ctx: Context) => {
    const parts = statementCsv(statementPages(ledger, accountIdOf(ctx), parse(filter, ctx.query)));
    // Read before the answer begins, so that a failure is still answered with an error.
    const first = await parts.next();
    async function* all() {
      if (!first.done) yield first.value;
      yield* parts;
    }
    ctx.set('Content-Type', 'text/csv; charset=utf-8');
    ctx.attachment('statement.csv');
    return Readable.from(all());
  };
  return [owner.get('statement', statement), owner.get('statement.csv', download)];
}
