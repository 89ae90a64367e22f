import { createHmac } from 'node:crypto';
import { type AccountRow, AccountTable, type KeyRow, maxKeys } from '../store/accountTable.ts';
import type { Sql } from '../store/database.ts';
import { StoreError } from '../store/error.ts';
import { QueryCache } from '../store/queryCache.ts';
import { sharedSecret } from '../store/secretTable.ts';
import { bucketOf, hashKey, newKey, randomText, shownPrefix } from './keyFormat.ts';
import { findKey, type KeyMatch } from './keyLookup.ts';

export type Account = AccountRow;
export type ApiKey = KeyRow;

export interface CreatedKey {
  readonly id: string;
  /** The only place where the key itself is returned. */
  readonly key: string;
  readonly prefix: string;
}

export class Accounts {
  readonly #table: AccountTable;
  readonly #now: () => number;
  readonly #pseudonymise: () => Promise<Pseudonymise>;
  /** Last uses, by key, that are not written yet. */
  readonly #used = new Map<string, number>();
  /** Matches of keys, by the hash of the key. */
  readonly #matches: QueryCache<KeyMatch>;

  /** `now` returns Unix milliseconds. */
  constructor(sql: Sql, now: () => number) {
    this.#table = new AccountTable(sql);
    this.#matches = new QueryCache(sql);
    this.#now = now;
    this.#pseudonymise = () => createPseudonymise(sql);
  }

  /** If `id` exists, returns that account unchanged. */
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

  /** `get`, and locks the account until the transaction ends. */
  async lock(id: string): Promise<Account> {
    const account = await this.#table.lockedAccount(id);
    if (!account) throw new StoreError('STORE_UNKNOWN_ACCOUNT', `There is no account ${id}.`);
    return account;
  }

  find(id: string): Promise<Account | undefined> {
    return this.#table.account(id);
  }

  /** Finds an account by its id, or by its name if that is unique. Rejects with STORE_UNKNOWN_ACCOUNT. */
  async resolve(idOrName: string): Promise<Account> {
    const named = await this.#table.accountsNamed(idOrName);
    const found = await this.find(idOrName);
    if (named.length > 1 && !found) {
      const message = `${named.length} accounts are named ${idOrName}: give the id of one.`;
      throw new StoreError('STORE_UNKNOWN_ACCOUNT', message);
    }
    return found ?? named[0] ?? this.get(idOrName);
  }

  /** Adds a key; undefined if it exists already. Throws STORE_UNKNOWN_ACCOUNT, also for a deleted account, and STORE_KEYS. */
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
    if (inserted === 'full')
      throw new StoreError(
        'STORE_KEYS',
        `The account has ${maxKeys} keys, which is the most. Revoke one that is not used any more.`,
      );
    if (inserted === 'known') return undefined;
    return { id: row.id, key, prefix: row.prefix };
  }

  /** Adds a new random key. Throws STORE_UNKNOWN_ACCOUNT and STORE_KEYS. */
  async createKey(accountId: string, label = ''): Promise<CreatedKey> {
    const created = await this.addKey(accountId, label, newKey());
    if (!created) throw new Error('Two random keys of 160 bits were equal: the random source is broken.');
    return created;
  }

  async keys(accountId: string): Promise<ApiKey[]> {
    await this.flush();
    return this.#table.keys(accountId);
  }

  /** False if there is no such key or it was revoked before. Effective from the next call on. */
  revokeKey(id: string): Promise<boolean> {
    return this.#table.revokeKey(id, this.#now());
  }

  /** Updates name and e-mail address to the provider's current ones; false if the account is deleted. */
  rename(id: string, name: string, email: string | null): Promise<boolean> {
    return this.#table.updatePerson(id, name, email);
  }

  /**
   * Revokes all keys and erases name, e-mail address, labels of keys and sign-ins. The ledger stays, and a
   * keyed digest of the owner, so that what is given once per person is not given again.
   */
  async erase(id: string): Promise<void> {
    const person = await this.#pseudonymise();
    await this.#table.erase(id, { name: 'deleted account', at: this.#now(), person });
  }

  /**
   * The account of a key; undefined if it is unknown or revoked, or its account deleted. A revocation by
   * another process or node is effective at once: the database is asked each time, except SQLite while
   * nothing was written to it.
   */
  async owner(key: string): Promise<Account | undefined> {
    return (await this.#match(hashKey(key)))?.account;
  }

  /** Finds the account of a key by its hash (`hashKey`), as `owner` does, and records the time of use. */
  async authenticate(hash: Buffer): Promise<Account | undefined> {
    const match = await this.#match(hash);
    if (!match) return undefined;
    this.#used.set(match.keyId, this.#now());
    return match.account;
  }

  #match(hash: Buffer): Promise<KeyMatch | undefined> {
    return this.#matches.get(hash.toString('latin1'), () => findKey(this.#table, hash));
  }

  /** Writes the recorded times of use; called periodically and at shutdown. */
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
}

/** Pseudonym of a person: HMAC-SHA-256 of issuer and subject with a key of this database. */
type Pseudonymise = (issuer: string, subject: string) => Buffer;

export async function createPseudonymise(sql: Sql): Promise<Pseudonymise> {
  const key = await sharedSecret(sql, 'person');
  return (issuer, subject) =>
    createHmac('sha256', key)
      .update(JSON.stringify([issuer, subject]))
      .digest();
}
