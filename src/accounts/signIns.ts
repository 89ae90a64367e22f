import { holdLiving } from '../store/accountRow.ts';
import { type Now, readClock } from '../store/clock.ts';
import type { Sql } from '../store/database.ts';
import { unknownAccount } from '../store/error.ts';
import { type Account, Accounts, createPseudonymise } from './accounts.ts';
import { hashKey, randomText } from './keyFormat.ts';

/** A person as authenticated by an identity provider. */
export interface Person {
  readonly issuer: string;
  /** Never changes and is never reassigned by this issuer. */
  readonly subject: string;
  readonly name: string;
  readonly email: string | null;
}

/** Minutes for which a one-time link is valid. */
export const linkMinutes = 60;
const linkMs = linkMinutes * 60_000;
/** A link that expires later than this many milliseconds from now is of a clock that was set back. */
const longestMs = linkMs + 60_000;

/** Finds the account of a person: through a provider, or a one-time link where none is configured. */
export class SignIns {
  readonly #sql: Sql;
  readonly #now: Now | undefined;

  /** `now` replaces the clocks of machine and database; links use the latter, which all servers share. */
  constructor(sql: Sql, now?: Now) {
    this.#sql = sql;
    this.#now = now;
  }

  /** The same inside a transaction. */
  within(sql: Sql): SignIns {
    return new SignIns(sql, this.#now);
  }

  /**
   * The person's account, created at the first sign-in. A person is identified by issuer and subject alone,
   * never by the e-mail address. A new account of a person who deleted one is linked to it, so that free
   * previews and first credits are not given again.
   */
  async accountOf({ issuer, subject, name, email }: Person): Promise<{ account: Account; created: boolean }> {
    const person = await createPseudonymise(this.#sql);
    // If two nodes see the same person for the first time, the second finds the account of the first.
    return this.#sql.transaction(async (sql) => {
      const now = this.#now ?? Date.now;
      const accounts = new Accounts(sql, now);
      const known = await sql.get<{ id: string }>(
        'SELECT account_id AS id FROM identity WHERE issuer = @issuer AND subject = @subject',
        { issuer, subject },
      );
      // A concurrent deletion takes precedence: its account stays deleted, and the person gets a new one.
      if (known && (await accounts.rename(known.id, name, email)))
        return { account: await accounts.get(known.id), created: false };
      const account = await accounts.create(name, undefined, email);
      const { id: accountId } = account;
      await sql.run(
        `INSERT INTO identity (issuer, subject, account_id, created_at)
         VALUES (@issuer, @subject, @accountId, @at)`,
        { issuer, subject, accountId, at: now() },
      );
      await sql.run(
        `INSERT INTO former_account (account_id, former_id)
         SELECT @accountId, account_id FROM deleted_account WHERE person = @person ON CONFLICT DO NOTHING`,
        { accountId, person: person(issuer, subject) },
      );
      return { account, created: true };
    });
  }

  /** A token that opens the console once, within the hour; only its hash is stored. Throws STORE_UNKNOWN_ACCOUNT. */
  async createLink(accountId: string): Promise<string> {
    const token = randomText(32);
    await this.#sql.transaction(async (sql) => {
      if (!(await holdLiving(sql, accountId))) throw unknownAccount(accountId);
      const expiresAt = (await readClock(sql, this.#now)) + linkMs;
      await sql.run(
        'INSERT INTO console_link (hash, account_id, expires_at) VALUES (@hash, @accountId, @expiresAt)',
        { hash: hashKey(token), accountId, expiresAt },
      );
    });
    return token;
  }

  /** Whether `takeLink` would return an account now. */
  async isGood(token: string): Promise<boolean> {
    const from = await readClock(this.#sql, this.#now);
    const found = await this.#sql.get(
      'SELECT 1 AS found FROM console_link WHERE hash = @hash AND expires_at > @from AND expires_at <= @to',
      { hash: hashKey(token), from, to: from + longestMs },
    );
    return found !== undefined;
  }

  /** The account of an unused link; undefined if it is unknown, used or expired. */
  takeLink(token: string): Promise<Account | undefined> {
    return this.#sql.transaction(async (sql) => {
      const from = await readClock(sql, this.#now);
      await sql.run('DELETE FROM console_link WHERE expires_at <= @from OR expires_at > @to', {
        from,
        to: from + longestMs,
      });
      const taken = await sql.get<{ id: string }>(
        'DELETE FROM console_link WHERE hash = @hash RETURNING account_id AS id',
        { hash: hashKey(token) },
      );
      return taken && new Accounts(sql, this.#now ?? Date.now).find(taken.id);
    });
  }
}

/** The provider cannot be reached or is not an OpenID provider. The message is public, the cause for the log. */
export class ProviderDown extends Error {
  override readonly name = 'ProviderDown';
}

/** The callback is invalid: refused by the provider, replayed, forged or too old. */
export class SignInRefused extends Error {
  override readonly name = 'SignInRefused';
}
