import { createHash } from 'node:crypto';
import type { SignInTable } from '../store/signInTable.ts';
import type { Account, Accounts } from './accounts.ts';
import { randomText } from './keys.ts';

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

const hashOf = (token: string) => createHash('sha256').update(token).digest();

/** How people come to their account: through a provider, or a one-time link where there is none. */
export class SignIns {
  readonly #table: SignInTable;
  readonly #accounts: Accounts;
  readonly #now: () => number;

  /** `now` gives Unix milliseconds. */
  constructor(table: SignInTable, accounts: Accounts, now: () => number) {
    this.#table = table;
    this.#accounts = accounts;
    this.#now = now;
  }

  /** The person's account, made at the first sign-in. Issuer and subject alone decide, never the e-mail. */
  accountOf({ issuer, subject, name, email }: Person): { account: Account; created: boolean } {
    return this.#table.transaction(() => {
      const known = this.#table.accountOf(issuer, subject);
      if (known !== undefined) {
        this.#accounts.rename(known, name, email);
        return { account: this.#accounts.get(known), created: false };
      }
      const account = this.#accounts.create(name, undefined, email);
      this.#table.insertIdentity(issuer, subject, account.id, this.#now());
      return { account, created: true };
    });
  }

  /** A token that opens the account's console once, within the hour. Only its hash is kept. */
  createLink(accountId: string): string {
    const token = randomText(32);
    this.#table.insertLink(hashOf(token), accountId, this.#now() + linkMinutes * 60_000);
    return token;
  }

  /** The account of a link that was never used; undefined when it is unknown, used or too old. */
  takeLink(token: string): Account | undefined {
    const id = this.#table.takeLink(hashOf(token), this.#now());
    return id === undefined ? undefined : this.#accounts.find(id);
  }
}
