import type { Sql } from '../store/database.ts';
import type { EntryKind } from './entries.ts';
import type { QuarterCredits } from './price.ts';

/** Credits added to accounts (`in`) or taken from them (`out`) other than by use; amounts are greater than 0. */
export interface Booked {
  readonly kind: Extract<EntryKind, 'grant' | 'purchase' | 'adjust' | 'refund'>;
  readonly direction: 'in' | 'out';
  readonly amount: QuarterCredits;
}

/**
 * Sums what was booked for all accounts since the beginning, whichever node or command booked it. Reads an index of such
 * entries only.
 */
export const booked = (sql: Sql): Promise<Booked[]> =>
  sql.all(
    `SELECT kind, CASE WHEN amount < 0 THEN 'out' ELSE 'in' END AS direction, sum(abs(amount)) AS amount
     FROM entry WHERE kind IN ('grant', 'purchase', 'adjust', 'refund')
     GROUP BY kind, direction ORDER BY kind, direction`,
  );

/** Returns the sum of all balances. */
export async function balances(sql: Sql): Promise<QuarterCredits> {
  const found = await sql.get<{ sum: QuarterCredits }>(
    'SELECT coalesce(sum(balance), 0) AS sum FROM account',
  );
  if (!found) throw new Error('A sum without a row.');
  return found.sum;
}
