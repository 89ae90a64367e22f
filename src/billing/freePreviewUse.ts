import type { Sql } from '../store/database.ts';
import { dayOf } from './entries.ts';
import type { LedgerTransaction } from './ledgerTransaction.ts';

export const monthOf = (at: number): string => dayOf(at).slice(0, 7);

/**
 * SQL condition: rows of all accounts of the same owner, that is those deleted before this account, and those
 * created after it if it was deleted while calls were pending.
 */
const ofOwnerOf = (account: string): string => `account_id IN (SELECT ${account}
  UNION ALL SELECT former_id FROM former_account WHERE former_account.account_id = ${account}
  UNION ALL SELECT later.account_id FROM former_account AS later WHERE later.former_id = ${account})`;

export const ofOwner = ofOwnerOf('@accountId');

/** SQL expression: free previews that the owner of an account used in the month `@month`. */
export const usedInMonth = (account: string): string =>
  `(SELECT coalesce(sum(used), 0) FROM free_use WHERE ${ofOwnerOf(account)} AND period = @month)`;

/** Free previews that the account's owner used in a UTC month ('2026-11') or on a UTC day ('2026-11-21'). */
export async function freeUse(sql: Sql, accountId: string, period: string): Promise<number> {
  const found = await sql.get<{ used: number }>(
    `SELECT coalesce(sum(used), 0) AS used FROM free_use WHERE ${ofOwner} AND period = @period`,
    { accountId, period },
  );
  return found?.used ?? 0;
}

/** Counts one more free preview in the month and on the day of the ledger transaction. */
export async function useFreePreview({ sql, accountId, at }: LedgerTransaction): Promise<void> {
  for (const period of [monthOf(at), dayOf(at)]) {
    await sql.run(
      `INSERT INTO free_use (account_id, period, used) VALUES (@accountId, @period, 1)
       ON CONFLICT (account_id, period) DO UPDATE SET used = free_use.used + 1`,
      { accountId, period },
    );
  }
}

/** Counts one less in the month and on the day it was used in, which may be over. */
export async function returnFreePreview(
  { sql, accountId }: LedgerTransaction,
  takenAt: number,
): Promise<void> {
  for (const period of [monthOf(takenAt), dayOf(takenAt)]) {
    await sql.run(
      'UPDATE free_use SET used = used - 1 WHERE account_id = @accountId AND period = @period AND used > 0',
      { accountId, period },
    );
  }
}
