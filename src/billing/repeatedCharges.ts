import type { Sql } from '../store/database.ts';
import type { Tier } from './price.ts';
import type { ChargedFor, Payment, RepeatNames } from './reservation.ts';

/** An earlier charge for the same content that was not refunded. */
export interface Charged {
  /** Its reserve entry. */
  readonly id: number;
  readonly tier: Tier;
}

const prefix = 'content:';
const contentName = ({ content }: RepeatNames): string => `${prefix}${content}`;

export const tierOf = (payment: Payment): Tier => (payment === 'full' ? 'full' : 'preview');

/**
 * What an account was charged for lately, by content, so that nothing is charged twice although a kept result is lost.
 * An Idempotency-Key plays no part: other content under a known key is other work. All of it inside a transaction that
 * holds the account.
 */
export const repeatedCharges = {
  async find(sql: Sql, accountId: string, names: RepeatNames, at: number): Promise<Charged | undefined> {
    const found = await sql.get<{ id: number; payment: Payment }>(
      `SELECT reserved.id, reserved.payment
       FROM repeat JOIN entry AS reserved ON reserved.id = repeat.reservation_id
       WHERE repeat.account_id = @accountId AND repeat.expires_at > @at AND repeat.name = @name
         AND NOT EXISTS (SELECT 1 FROM entry AS back
           WHERE back.reservation_id = reserved.id AND back.kind = 'refund')`,
      { accountId, at, name: contentName(names) },
    );
    return found && { id: found.id, tier: tierOf(found.payment) };
  },

  /** The content is charged from `at` on. */
  async remember(
    sql: Sql,
    accountId: string,
    names: RepeatNames,
    charge: { readonly id: number; readonly at: number },
  ): Promise<void> {
    await sql.run(
      `INSERT INTO repeat (account_id, name, reservation_id, expires_at)
       VALUES (@accountId, @name, @id, @expiresAt)
       ON CONFLICT (account_id, name) DO UPDATE SET reservation_id = @id, expires_at = @expiresAt`,
      { accountId, name: contentName(names), id: charge.id, expiresAt: charge.at + names.forMs },
    );
  },

  /** What the charge of this number was made for, for as long as that is remembered. */
  async chargedFor(sql: Sql, charge: number): Promise<ChargedFor | undefined> {
    const found = await sql.get<{ accountId: string; name: string }>(
      `SELECT repeat.account_id AS "accountId", repeat.name
       FROM entry AS reserved JOIN repeat
         ON repeat.account_id = reserved.account_id AND repeat.reservation_id = reserved.id
       WHERE reserved.id = @charge`,
      { charge },
    );
    return found && { accountId: found.accountId, content: found.name.slice(prefix.length) };
  },

  async forget(sql: Sql, at: number): Promise<void> {
    await sql.run('DELETE FROM repeat WHERE expires_at <= @at', { at });
  },
};
