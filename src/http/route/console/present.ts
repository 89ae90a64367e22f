import type { Account, ApiKey } from '../../../accounts/accounts.ts';
import type { Entry, UsageRow } from '../../../billing/entries.ts';
import type { HandedIn } from '../../../improve/improve.ts';
import type { AuditRow } from '../../../store/auditTable.ts';
import type { AccountInfo, Audit, ImageInfo, KeyInfo, Overview, Statement } from './api.ts';

const time = (at: number) => new Date(at).toISOString();
const timeOrNull = (at: number | null) => (at === null ? null : time(at));

export const keyInfo = ({ id, label, prefix, createdAt, lastUsedAt, revokedAt }: ApiKey): KeyInfo => ({
  id,
  name: label,
  prefix,
  createdAt: time(createdAt),
  lastUsedAt: timeOrNull(lastUsedAt),
  revokedAt: timeOrNull(revokedAt),
});

/** Newest first, revoked ones at the end. */
export const keyInfos = (keys: readonly ApiKey[]): KeyInfo[] =>
  keys
    .toSorted(
      (a, b) => Number(a.revokedAt !== null) - Number(b.revokedAt !== null) || b.createdAt - a.createdAt,
    )
    .map(keyInfo);

export const entryInfo = (entry: Entry): Statement['entries'][number] => ({
  id: entry.id,
  at: time(entry.at),
  kind: entry.kind,
  amount: entry.amount / 4,
  balance: entry.balance / 4,
  payment: entry.payment,
  request: entry.requestId,
  note: entry.note,
});

export const imageInfo = ({ id, at, filename, bytes, width, height }: HandedIn): ImageInfo => ({
  id,
  at: time(at),
  name: filename,
  bytes,
  width,
  height,
});

export const accountInfo = (
  { id, name, email, createdAt, deletedAt }: Account,
  credits: number,
  keys: readonly ApiKey[],
): AccountInfo => ({
  id,
  name,
  email,
  credits: credits / 4,
  createdAt: time(createdAt),
  deletedAt: timeOrNull(deletedAt),
  keys: keyInfos(keys),
});

export const auditInfo = (row: AuditRow): Audit['entries'][number] => ({ ...row, at: time(row.at) });

const dayMs = 86_400_000;

/** One row a UTC day from `from` to the day of `now`, both included, whether or not anything happened. */
export function usageDays(rows: readonly UsageRow[], from: number, now: number): Overview['days'] {
  const days: Overview['days'][number][] = [];
  for (let at = from; at <= now; at += dayMs) {
    const day = time(at).slice(0, 10);
    const of = rows.filter((row) => row.day === day);
    const calls = (payment: UsageRow['payment']) => of.find((row) => row.payment === payment)?.calls ?? 0;
    const credits = of.reduce((sum, row) => sum + row.credits, 0) / 4;
    days.push({ day, free: calls('free'), preview: calls('preview'), full: calls('full'), credits });
  }
  return days;
}

/** A page of `limit` of what was asked for with one more. */
export function pageOf<T extends { readonly id: number }>(
  found: readonly T[],
  limit: number,
): { entries: readonly T[]; next: number | null } {
  const entries = found.slice(0, limit);
  return { entries, next: found.length > limit ? (entries.at(-1)?.id ?? null) : null };
}
