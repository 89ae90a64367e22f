import type { ApiKey } from '../accounts/accounts.ts';
import type { AccountBalance } from './accountList.ts';
import { type Entry, scoreOf, type UsageRow } from './entries.ts';
import { formatCredits } from './price.ts';

/** Rows of the ledger as operators see them, on the command line and over HTTP. Times are ISO 8601, UTC. */
export type Row = Readonly<Record<string, string | number | null>>;

/** Unix milliseconds as ISO 8601 in UTC. */
export const isoTime = (at: number): string => new Date(at).toISOString();

export const isoTimeOrNull = (at: number | null): string | null => (at === null ? null : isoTime(at));

export const accountRow = ({ id, name, createdAt, credits, freeCalls }: AccountBalance): Row => ({
  id,
  name,
  created: isoTime(createdAt),
  credits: formatCredits(credits),
  free_calls: freeCalls,
});

export const keyRow = (key: ApiKey): Row => ({
  id: key.id,
  prefix: key.prefix,
  label: key.label,
  created: isoTime(key.createdAt),
  last_used: isoTimeOrNull(key.lastUsedAt),
  revoked: isoTimeOrNull(key.revokedAt),
});

export const entryRow = (entry: Entry): Row => ({
  id: entry.id,
  time: isoTime(entry.at),
  kind: entry.kind,
  amount: formatCredits(entry.amount),
  balance: formatCredits(entry.balance),
  payment: entry.payment,
  reservation: entry.reservationId,
  request: entry.requestId,
  reference: entry.reference,
  note: entry.note,
  uncertainty: scoreOf(entry),
});

export const usageRow = (row: UsageRow): Row => ({
  day: row.day,
  account: row.accountId,
  payment: row.payment,
  calls: row.calls,
  credits: formatCredits(row.credits),
  to_review: row.toReview,
});

/** Rows as CSV (RFC 4180). An apostrophe precedes what a spreadsheet would evaluate: names are user input. */
export function csv(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => {
    const safe = /^[=+@\t\r]/.test(text) || /^-(?!\d+(\.\d+)?$)/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}
