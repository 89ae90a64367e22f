import { timingSafeEqual } from 'node:crypto';
import { type AccountRow, AccountTable, type KeyCandidate, type KeyRow } from '../store/accountTable.ts';
import type { Sql } from '../store/database.ts';
import { StoreError } from '../store/error.ts';
import { bucketOf, hashKey, newKey, randomText, shownPrefix } from './keys.ts';
import { createPseudonymise, type Pseudonymise } from './pseudonym.ts';

export type Account = AccountRow;
export type ApiKey = KeyRow;

export interface CreatedKey {
  readonly id: string;
  /** The only moment the key itself is known. */
  readonly key: string;
  readonly prefix: string;
}

/** Compared when there is no candidate, so that an unknown key takes the same way as a known one. */
const nobody = Buffer.alloc(32);

export class Accounts {
  readonly #table: AccountTable;
  readonly #now: () => number;
  readonly #pseudonymise: () => Promise<Pseudonymise>;
  /** Last uses that are not written yet, by key. */
  readonly #used = new Map<string, number>();

  /** `now` gives Unix milliseconds. */
  constructor(sql: Sql, now: () => number) {
    this.#table = new AccountTable(sql);
    this.#now = now;
    this.#pseudonymise = () => createPseudonymise(sql);
  }

  /** With an `id` that exists, the account that is there, unchanged. */
  async create(name: string, id = `acc_${randomText(16)}`, email: string | null = null): Promise<Account> {
    return (await this.createOnce(name, id, email)).account;
  }

  /** `create`, and whether the account is new. */
  async createOnce(
    name: string,
    id: string,
    email: string | null = null,
  ): Promise<{ account: Account; created: boolean }> {
    const created = await this.#table.insertAccount({ id, name, email, createdAt: this.#now() });
    return { account: await this.get(id), created };
  }

  /** Throws STORE_UNKNOWN_ACCOUNT. */
  async get(id: string): Promise<Account> {
    const account = await this.#table.account(id);
    if (!account) throw new StoreError('STORE_UNKNOWN_ACCOUNT', `There is no account ${id}.`);
    return account;
  }

  /** `get`, and nobody else changes the account until the transaction ends. */
  async hold(id: string): Promise<Account> {
    const account = await this.#table.heldAccount(id);
    if (!account) throw new StoreError('STORE_UNKNOWN_ACCOUNT', `There is no account ${id}.`);
    return account;
  }

  find(id: string): Promise<Account | undefined> {
    return this.#table.account(id);
  }

  /** By id, or by name where only one has it. Throws STORE_UNKNOWN_ACCOUNT. */
  async resolve(idOrName: string): Promise<Account> {
    const named = await this.#table.accountsNamed(idOrName);
    const found = await this.find(idOrName);
    if (named.length > 1 && !found) {
      const message = `${named.length} accounts are named ${idOrName}: give the id of one.`;
      throw new StoreError('STORE_UNKNOWN_ACCOUNT', message);
    }
    return found ?? named[0] ?? this.get(idOrName);
  }

  /** Adds a key; undefined when the given one exists already. Throws STORE_UNKNOWN_ACCOUNT, also for a deleted one. */
  async addKey(accountId: string, label: string, key: string): Promise<CreatedKey | undefined> {
    const hash = hashKey(key);
    const row = {
      id: `key_${randomText(12)}`,
      accountId,
      prefix: shownPrefix(key),
      label,
      createdAt: this.#now(),
    };
    const inserted = await this.#table.insertKey(row, bucketOf(hash), hash);
    if (inserted === 'no account') {
      await this.get(accountId);
      throw new StoreError('STORE_UNKNOWN_ACCOUNT', `The account ${accountId} was deleted by its owner.`);
    }
    if (inserted === 'known') return undefined;
    return { id: row.id, key, prefix: row.prefix };
  }

  /** Adds a new random key. Throws STORE_UNKNOWN_ACCOUNT. */
  async createKey(accountId: string, label = ''): Promise<CreatedKey> {
    const created = await this.addKey(accountId, label, newKey());
    if (!created) throw new Error('Two random keys of 160 bits were equal: the random source is broken.');
    return created;
  }

  async keys(accountId: string): Promise<ApiKey[]> {
    await this.flush();
    return this.#table.keys(accountId);
  }

  /** False when there is no such key or it was revoked before. Counts from the next call on. */
  revokeKey(id: string): Promise<boolean> {
    return this.#table.revokeKey(id, this.#now());
  }

  /** Name and e-mail as the provider of the sign-in says them now; false when the account is deleted. */
  rename(id: string, name: string, email: string | null): Promise<boolean> {
    return this.#table.updatePerson(id, name, email);
  }

  /**
   * Revokes every key and forgets name, e-mail, keys' names and sign-ins. The ledger stays as it is, and a keyed digest by
   * which its owner is known again: what was given once is not given again.
   */
  async erase(id: string): Promise<void> {
    const person = await this.#pseudonymise();
    await this.#table.erase(id, { name: 'deleted account', at: this.#now(), person });
  }

  /**
   * The account a key belongs to; undefined when it is unknown or revoked, or its account deleted. Asks the database each time
   * (a few microseconds with SQLite, one way there and back with PostgreSQL), so a revocation by another process
   * or node counts at once.
   */
  async owner(key: string): Promise<Account | undefined> {
    return (await this.#match(key))?.account;
  }

  /** `owner`, and remembers that the key was used now. */
  async authenticate(key: string): Promise<Account | undefined> {
    const match = await this.#match(key);
    if (!match) return undefined;
    this.#used.set(match.keyId, this.#now());
    return match.account;
  }

  /** Writes the last uses of keys; the owner of the books calls it now and then, and at the end. */
  async flush(): Promise<void> {
    if (this.#used.size === 0) return;
    const uses = new Map(this.#used);
    this.#used.clear();
    try {
      await this.#table.writeUse(uses);
    } catch (error) {
      for (const [key, at] of uses) this.#used.set(key, Math.max(at, this.#used.get(key) ?? 0));
      throw error;
    }
  }

  /** No early exit: every candidate is compared whole, and there is always at least one comparison. */
  async #match(key: string): Promise<{ keyId: string; account: Account } | undefined> {
    const hash = hashKey(key);
    let found: KeyCandidate | undefined;
    timingSafeEqual(hash, nobody);
    for (const candidate of await this.#table.candidates(bucketOf(hash))) {
      if (timingSafeEqual(hash, candidate.hash)) found = candidate;
    }
    if (!found || found.revokedAt !== null || found.deletedAt !== null) return undefined;
    const { keyId, id, name, email, createdAt, deletedAt } = found;
    return { keyId, account: { id, name, email, createdAt, deletedAt } };
  }
}
