import type { Sql } from '../store/database.ts';

/** Identifies repeats of charged work (docs/contract.md section 5.1). */
export interface Repeatable {
  /** Hash of image and settings (`ContentIdentifier`). */
  readonly content: string;
  /** Milliseconds for which the charge is remembered, whether or not its result is still cached. */
  readonly forMs: number;
}

/** What a charge was made for. */
export interface ChargedFor {
  readonly accountId: string;
  /** The name of the content, as in `Repeatable`. */
  readonly content: string;
}

/*
 * The table `repeat`: which charge of an account paid for a content lately, so that no content is charged twice although
 * its cached result is lost. An Idempotency-Key plays no part: other content under a known key is other work. Whether a
 * charge still stands is for src/billing to say. A charge is the number of its reserve entry.
 */

const prefix = 'content:';
const nameOf = ({ content }: Repeatable): string => `${prefix}${content}`;

/** The charge remembered for the content at `at` (Unix milliseconds), whether or not it is still valid. */
export async function findCharge(
  sql: Sql,
  accountId: string,
  repeat: Repeatable,
  at: number,
): Promise<number | undefined> {
  const found = await sql.get<{ charge: number }>(
    `SELECT reservation_id AS charge FROM repeat
     WHERE account_id = @accountId AND expires_at > @at AND name = @name`,
    { accountId, at, name: nameOf(repeat) },
  );
  return found?.charge;
}

/** Remembers `charge` as the one for the content, from `at` (Unix milliseconds) on. */
export async function rememberCharge(
  sql: Sql,
  accountId: string,
  repeat: Repeatable,
  { charge, at }: { readonly charge: number; readonly at: number },
): Promise<void> {
  await sql.run(
    `INSERT INTO repeat (account_id, name, reservation_id, expires_at)
     VALUES (@accountId, @name, @charge, @expiresAt)
     ON CONFLICT (account_id, name) DO UPDATE SET reservation_id = @charge, expires_at = @expiresAt`,
    { accountId, name: nameOf(repeat), charge, expiresAt: at + repeat.forMs },
  );
}

/** What the charge was made for, while it is remembered. */
export async function contentOfCharge(sql: Sql, charge: number): Promise<ChargedFor | undefined> {
  const found = await sql.get<{ accountId: string; name: string }>(
    `SELECT repeat.account_id AS "accountId", repeat.name
     FROM entry AS reserved JOIN repeat
       ON repeat.account_id = reserved.account_id AND repeat.reservation_id = reserved.id
     WHERE reserved.id = @charge`,
    { charge },
  );
  return found && { accountId: found.accountId, content: found.name.slice(prefix.length) };
}

/** Forgets charges that expired by `at` (Unix milliseconds). */
export async function forgetCharges(sql: Sql, at: number): Promise<void> {
  await sql.run('DELETE FROM repeat WHERE expires_at <= @at', { at });
}
