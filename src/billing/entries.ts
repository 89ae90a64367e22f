import type { Sql } from '../store/database.ts';
import type { QuarterCredits } from './price.ts';
import type { Payment } from './reservation.ts';

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

export interface HistoryPage extends Span {
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
  readonly credits: QuarterCredits;
}

const columns = `id, account_id AS "accountId", at, kind, amount, balance, payment, request_id AS "requestId",
  reservation_id AS "reservationId", reference, note`;
const endless = Number.MAX_SAFE_INTEGER;
const dayMs = 86_400_000;

/** UTC: '2026-11-21'. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** Newest last. */
export function statement(sql: Sql, accountId: string, page: StatementPage): Promise<Entry[]> {
  const { from = 0, to = endless, after = 0, limit = endless } = page;
  return sql.all(
    `SELECT ${columns} FROM entry
     WHERE account_id = @accountId AND id > @after AND at >= @from AND at < @to ORDER BY id LIMIT @limit`,
    { accountId, after, from, to, limit },
  );
}

/** Newest first. */
export function history(sql: Sql, accountId: string, page: HistoryPage): Promise<Entry[]> {
  const { from = 0, to = endless, before = endless, limit = endless, kind = null } = page;
  return sql.all(
    `SELECT ${columns} FROM entry
     WHERE account_id = @accountId AND id < @before AND at >= @from AND at < @to
       AND (CAST(@kind AS TEXT) IS NULL OR kind = @kind)
     ORDER BY id DESC LIMIT @limit`,
    { accountId, before, from, to, kind, limit },
  );
}

/** Charged calls by day, account and payment, without repeats and refunds. */
export async function usage(sql: Sql, span: Span, accountId: string | null): Promise<UsageRow[]> {
  const { from = 0, to = endless } = span;
  const rows = await sql.all<Omit<UsageRow, 'day'> & { readonly day: number }>(
    `SELECT settled.at / ${dayMs} AS day, reserved.account_id AS "accountId",
       reserved.payment, count(*) AS calls, -sum(reserved.amount) AS credits
     FROM entry AS settled JOIN entry AS reserved ON reserved.id = settled.reservation_id
     WHERE settled.kind = 'settle' AND settled.at >= @from AND settled.at < @to
       AND (CAST(@accountId AS TEXT) IS NULL OR settled.account_id = @accountId)
       AND reserved.reservation_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM entry AS back
         WHERE back.reservation_id = reserved.id AND back.kind = 'refund')
     GROUP BY day, reserved.account_id, reserved.payment
     ORDER BY day, reserved.account_id, reserved.payment`,
    { from, to, accountId },
  );
  return rows.map((row) => ({ ...row, day: dayOf(row.day * dayMs) }));
}
