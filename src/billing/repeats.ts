import type { Sql } from '../store/database.ts';
import type { QuarterCredits, Tier } from './price.ts';
import type { Payment, RepeatNames } from './reservation.ts';

/** A charge that stands, and was made for the work that is asked for again. */
export interface Charged {
  /** Its reserve entry. */
  readonly id: number;
  readonly payment: Payment;
  readonly amount: QuarterCredits;
  /** Unix milliseconds. */
  readonly createdAt: number;
  /** What it is known by. */
  readonly name: string;
  readonly tier: Tier;
}

/** Both in one column: hashes of different things. */
export const contentName = ({ content }: RepeatNames): string => `content:${content}`;
const keyName = ({ key }: RepeatNames): string | null => (key === undefined ? null : `key:${key}`);

/**
 * What an account paid for lately, so that nothing is charged twice although a kept result is lost. All of it inside
 * a transaction that holds the account.
 */
export const repeats = {
  /** By its content before its key: a key may have been used for another picture. */
  async find(sql: Sql, accountId: string, names: RepeatNames, now: number): Promise<Charged | undefined> {
    const [content, key] = [contentName(names), keyName(names)];
    const found = await sql.all<Omit<Charged, 'tier'>>(
      `SELECT reserved.id, reserved.payment, -reserved.amount AS amount, reserved.at AS "createdAt", repeat.name
       FROM repeat JOIN entry AS reserved ON reserved.id = repeat.reservation_id
       WHERE repeat.account_id = @accountId AND repeat.expires_at > @now AND repeat.name IN (@content, @key)
         AND NOT EXISTS (SELECT 1 FROM entry AS back
           WHERE back.reservation_id = reserved.id AND back.kind = 'refund')`,
      { accountId, now, content, key },
    );
    const best = found.find(({ name }) => name === content) ?? found[0];
    return best && { ...best, tier: best.payment === 'full' ? 'full' : 'preview' };
  },

  /** The work of this reservation is charged for. */
  async remember(
    sql: Sql,
    accountId: string,
    names: RepeatNames,
    charge: { readonly id: number; readonly at: number },
  ): Promise<void> {
    for (const name of [contentName(names), keyName(names)]) {
      if (name === null) continue;
      await sql.run(
        `INSERT INTO repeat (account_id, name, reservation_id, expires_at)
         VALUES (@accountId, @name, @id, @expiresAt)
         ON CONFLICT (account_id, name) DO UPDATE SET reservation_id = @id, expires_at = @expiresAt`,
        { accountId, name, id: charge.id, expiresAt: charge.at + names.forMs },
      );
    }
  },

  /**
   * A repeat was made for a charge that was found by its key alone: from now on the charge is for what was made.
   * Otherwise one key would open work without end while no results can be kept.
   */
  async rename(sql: Sql, accountId: string, names: RepeatNames, charged: Charged): Promise<void> {
    const content = contentName(names);
    if (charged.name === content) return;
    await sql.run('DELETE FROM repeat WHERE account_id = @accountId AND name = @content', {
      accountId,
      content,
    });
    await sql.run('UPDATE repeat SET name = @content WHERE account_id = @accountId AND name = @name', {
      accountId,
      content,
      name: charged.name,
    });
  },

  async forget(sql: Sql, now: number): Promise<void> {
    await sql.run('DELETE FROM repeat WHERE expires_at <= @now', { now });
  },
};
