import type { Account } from '../accounts/accounts.ts';
import { accountColumns } from '../store/accountRow.ts';
import type { Sql } from '../store/database.ts';
import { cursorValues, type TimedPage } from '../store/page.ts';
import { usedInMonth } from './freePreviewUse.ts';
import type { Balance } from './types.ts';

export type AccountBalance = Account & Balance;

export interface AccountQuery extends Partial<TimedPage> {
  /** Part of the id, the name or the e-mail address; case-insensitive. */
  readonly search?: string | undefined;
}

/** A LIKE pattern for texts that contain `part`; its escape character is a backslash. */
const containing = (part: string) => `%${part.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;

/** Newest first, in one query. `month`: UTC, '2026-11'; `perMonth`: free previews per month. */
export async function listBalances(
  sql: Sql,
  { month, perMonth }: { readonly month: string; readonly perMonth: number },
  { search = '', before, limit = Number.MAX_SAFE_INTEGER }: AccountQuery,
): Promise<AccountBalance[]> {
  // No stored text contains U+0000, at which SQLite would end the pattern and PostgreSQL refuse it.
  if (search.includes('\0')) return [];
  const matching = ['account.id', 'account.name', "coalesce(account.email, '')"]
    .map((text) => `${sql.dialect.lower(text)} LIKE @pattern ESCAPE '\\'`)
    .join(' OR ');
  const rows = await sql.all<Account & { readonly credits: Balance['credits']; readonly used: number }>(
    `SELECT ${accountColumns}, account.balance AS credits, ${usedInMonth('account.id')} AS used
     FROM account
     WHERE (account.created_at, account.id) < (@beforeAt, @beforeId)
       AND (${matching})
     ORDER BY account.created_at DESC, account.id DESC LIMIT @limit`,
    { month, pattern: containing(search), limit, ...cursorValues(before) },
  );
  return rows.map(({ used, ...row }) => ({ ...row, freeCalls: Math.max(0, perMonth - used) }));
}
