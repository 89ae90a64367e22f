import { createHash } from 'node:crypto';
import { AccountTable, holdLiving } from '../store/accountTable.ts';
import { type Now, readClock } from '../store/clock.ts';
import type { Sql } from '../store/database.ts';
import { unknownAccount } from '../store/error.ts';
import { SignInTable } from '../store/signInTable.ts';
import { type Account, Accounts } from './accounts.ts';
import { randomText } from './keys.ts';
import { createPseudonymise } from './pseudonym.ts';

/** A person as an identity provider vouches for them. */
export interface Person {
  readonly issuer: string;
  /** Never changes and is never given to another at this issuer. */
  readonly subject: string;
  readonly name: string;
  readonly email: string | null;
}

/** Minutes that a one-time link stays good. */
export const linkMinutes = 60;
const linkMs = linkMinutes * 60_000;
/** One that ends later than this many milliseconds from now was made by a clock that has been set back since. */
const longestMs = linkMs + 60_000;

const hashOf = (token: string) => createHash('sha256').update(token).digest();

/** How people come to their account: through a provider, or a one-time link where there is none. */
export class SignIns {
  readonly #sql: Sql;
  readonly #now: Now | undefined;

  /** `now` in place of the clocks of machine and database. Links go by the database's, which all servers share. */
  constructor(sql: Sql, now?: Now) {
    this.#sql = sql;
    this.#now = now;
  }

  /** The same inside a transaction of the database. */
  within(sql: Sql): SignIns {
    return new SignIns(sql, this.#now);
  }

  /**
   * The person's account, created at the first sign-in. A person is identified by issuer and subject alone, never by the
   * e-mail address. A new account of a person who deleted one before is linked to it: what was given there, free previews
   * and the first credits, is not given again.
   */
  async accountOf({ issuer, subject, name, email }: Person): Promise<{ account: Account; created: boolean }> {
    const person = await createPseudonymise(this.#sql);
    // Where two nodes meet the same person for the first time, the second finds the account of the first.
    return this.#sql.transaction(async (sql) => {
      const table = new SignInTable(sql);
      const now = this.#now ?? Date.now;
      const accounts = new Accounts(sql, now);
      const known = await table.accountOf(issuer, subject);
      // A deletion that is under way comes first: its account is left alone, and the person begins anew.
      if (known !== undefined && (await accounts.rename(known, name, email))) {
        return { account: await accounts.get(known), created: false };
      }
      const account = await accounts.create(name, undefined, email);
      await table.insertIdentity(issuer, subject, account.id, now());
      await table.insertFormer(account.id, person(issuer, subject));
      return { account, created: true };
    });
  }

  /**
   * A token that opens the account's console once, within the hour. Only its hash is kept. Throws STORE_UNKNOWN_ACCOUNT, also
   * for a deleted one.
   */
  async createLink(accountId: string): Promise<string> {
    const token = randomText(32);
    await this.#sql.transaction(async (sql) => {
      if (!(await holdLiving(sql, accountId))) throw unknownAccount(accountId);
      const expiresAt = (await readClock(sql, this.#now)) + linkMs;
      await new SignInTable(sql).insertLink(hashOf(token), accountId, expiresAt);
    });
    return token;
  }

  /** Whether `takeLink` would give an account now. */
  async isGood(token: string): Promise<boolean> {
    const at = await readClock(this.#sql, this.#now);
    return new SignInTable(this.#sql).hasLink(hashOf(token), at, at + longestMs);
  }

  /** The account of a link that was never used; undefined when it is unknown, used or too old. */
  takeLink(token: string): Promise<Account | undefined> {
    return this.#sql.transaction(async (sql) => {
      const at = await readClock(sql, this.#now);
      const id = await new SignInTable(sql).takeLink(hashOf(token), at, at + longestMs);
      return id === undefined ? undefined : new AccountTable(sql).account(id);
    });
  }
}
