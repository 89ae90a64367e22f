import type { Sql } from '../store/database.ts';
import type { QuarterCredits } from './price.ts';
import type { Payment } from './types.ts';

export type EntryKind = 'grant' | 'purchase' | 'reserve' | 'settle' | 'release' | 'refund' | 'adjust';

export interface Entry {
  readonly id: number;
  readonly accountId: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly kind: EntryKind;
  /** Change of the balance. */
  readonly amount: QuarterCredits;
  /** The balance after it. */
  readonly balance: QuarterCredits;
  readonly payment: Payment | null;
  readonly requestId: string | null;
  /** The reserve entry it belongs to; of a reserve entry: the charge that it repeats. */
  readonly reservationId: number | null;
  readonly reference: string | null;
  readonly note: string | null;
  /** A settle entry has X-Uncertainty-Score of its result, in thousandths; null: not known. */
  readonly uncertainty: number | null;
}

/** Half-open interval, `from` included, `to` excluded. Unix milliseconds; absent: no bound. */
export interface Span {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export interface StatementPage extends Span {
  /** Id of the last entry already known. */
  readonly after?: number | undefined;
  readonly limit?: number | undefined;
}

export interface NewestFirstPage extends Span {
  readonly kind?: EntryKind | undefined;
  /** Id of the oldest entry already known. */
  readonly before?: number | undefined;
  readonly limit?: number | undefined;
}

export interface UsageRow {
  /** UTC: '2026-11-21'. */
  readonly day: string;
  readonly accountId: string;
  readonly payment: Payment;
  readonly calls: number;
  /** Calls whose result a person should look at: its uncertainty is at least `reviewFrom`. */
  readonly toReview: number;
  readonly credits: QuarterCredits;
}

const columns = `id, account_id AS "accountId", at, kind, amount, balance, payment, request_id AS "requestId",
  reservation_id AS "reservationId", reference, note, uncertainty`;
/** The chance from which a result is shown to people: 0 to 1, as X-Uncertainty-Score. */
export const reviewFrom = 0.5;

/** X-Uncertainty-Score (0 to 1; negative or undefined: not known) as an entry has it. */
export const thousandthsOf = (score: number | undefined): Entry['uncertainty'] =>
  score === undefined || score < 0 ? null : Math.round(1000 * score);

/** X-Uncertainty-Score of the result that an entry charges; null: not known. */
export const scoreOf = ({ uncertainty }: Entry): number | null =>
  uncertainty === null ? null : uncertainty / 1000;

const endless = Number.MAX_SAFE_INTEGER;
const dayMs = 86_400_000;

/** UTC: '2026-11-21'. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/**
 * Oldest of the entries behind `after` that are in the span, in the order of their times if there is a span; then none if
 * `after` is no entry of the account.
 */
export async function statement(sql: Sql, accountId: string, page: StatementPage): Promise<Entry[]> {
  const { from, to = endless, after = 0, limit = endless } = page;
  if (from === undefined && to === endless)
    return sql.all(
      `SELECT ${columns} FROM entry WHERE account_id = @accountId AND id > @after ORDER BY id LIMIT @limit`,
      { accountId, after, limit },
    );
  const known = after === 0 ? -1 : await timeOf(sql, accountId, after);
  if (known === undefined) return [];
  const [at, id] = known >= (from ?? 0) ? [known, after] : [from ?? 0, 0];
  return sql.all(
    `SELECT ${columns} FROM entry${sql.dialect.through('entry_at')}
     WHERE account_id = @accountId AND (at, id) > (@at, @id) AND at < @to ORDER BY at, id LIMIT @limit`,
    { accountId, at, id, to, limit },
  );
}

/**
 * Newest first, of those before `before`: in the order of their times if there is a span or a kind; then none if `before` is
 * no entry of the account. Reads the entries of the page only, through an index that has their order.
 */
export async function statementNewestFirst(
  sql: Sql,
  accountId: string,
  page: NewestFirstPage,
): Promise<Entry[]> {
  const { from = 0, to = endless, before = endless, limit = endless, kind } = page;
  if (kind === undefined && page.from === undefined && page.to === undefined)
    return sql.all(
      `SELECT ${columns} FROM entry
       WHERE account_id = @accountId AND id < @before ORDER BY id DESC LIMIT @limit`,
      { accountId, before, limit },
    );
  const known = before === endless ? endless : await timeOf(sql, accountId, before);
  if (known === undefined) return [];
  const [at, id] = known < to ? [known, before] : [to, 0];
  return sql.all(
    `SELECT ${columns} FROM entry${sql.dialect.through(kind === undefined ? 'entry_at' : 'entry_kind')}
     WHERE account_id = @accountId ${kind === undefined ? '' : 'AND kind = @kind'}
       AND (at, id) < (@at, @id) AND at >= @from
     ORDER BY at DESC, id DESC LIMIT @limit`,
    { accountId, at, id, from, limit, ...(kind !== undefined && { kind }) },
  );
}

/** When the entry was made; undefined if the account has none of that number. */
async function timeOf(sql: Sql, accountId: string, id: number): Promise<number | undefined> {
  const found = await sql.get<{ at: number }>(
    'SELECT at FROM entry WHERE id = @id AND account_id = @accountId',
    { id, accountId },
  );
  return found?.at;
}

/** Charged calls by day, account and payment, without repeats and refunds. */
export async function usage(sql: Sql, span: Span, accountId: string | null): Promise<UsageRow[]> {
  const { from = 0, to = endless } = span;
  // A condition that also admits all accounts would keep both databases from using an index.
  const ofAccount = accountId === null ? '' : 'AND settled.account_id = @accountId';
  const rows = await sql.all<Omit<UsageRow, 'day'> & { readonly day: number }>(
    `SELECT settled.at / ${dayMs} AS day, reserved.account_id AS "accountId",
       reserved.payment, count(*) AS calls,
       count(CASE WHEN settled.uncertainty >= @toReview THEN 1 END) AS "toReview", -sum(reserved.amount) AS credits
     FROM entry AS settled JOIN entry AS reserved ON reserved.id = settled.reservation_id
     WHERE settled.kind = 'settle' AND settled.at >= @from AND settled.at < @to
       ${ofAccount}
       AND reserved.reservation_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM entry AS back
         WHERE back.reservation_id = reserved.id AND back.kind = 'refund')
     GROUP BY day, reserved.account_id, reserved.payment
     ORDER BY day, reserved.account_id, reserved.payment`,
    { from, to, toReview: thousandthsOf(reviewFrom), ...(accountId !== null && { accountId }) },
  );
  return rows.map((row) => ({ ...row, day: dayOf(row.day * dayMs) }));
}
