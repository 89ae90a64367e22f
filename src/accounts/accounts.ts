import { timingSafeEqual } from 'node:crypto';
import type { AccountRow, AccountTable, KeyCandidate, KeyRow } from '../store/accountTable.ts';
import { StoreError } from '../store/error.ts';
import { bucketOf, hashKey, newKey, randomText, shownPrefix } from './keys.ts';

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
  /** Last uses that are not written yet, by key. */
  readonly #used = new Map<string, number>();

  /** `now` gives Unix milliseconds. */
  constructor(table: AccountTable, now: () => number) {
    this.#table = table;
    this.#now = now;
  }

  /** With an `id` that exists, the account that is there, unchanged. */
  create(name: string, id = `acc_${randomText(16)}`, email: string | null = null): Account {
    this.#table.insertAccount({ id, name, email, createdAt: this.#now() });
    return this.get(id);
  }

  /** Throws STORE_UNKNOWN_ACCOUNT. */
  get(id: string): Account {
    const account = this.#table.account(id);
    if (!account) throw new StoreError('STORE_UNKNOWN_ACCOUNT', `There is no account ${id}.`);
    return account;
  }

  find(id: string): Account | undefined {
    return this.#table.account(id);
  }

  /** By id, or by name where only one has it. Throws STORE_UNKNOWN_ACCOUNT. */
  resolve(idOrName: string): Account {
    const named = this.#table.accountsNamed(idOrName);
    if (named.length > 1 && !this.find(idOrName)) {
      const message = `${named.length} accounts are named ${idOrName}: give the id of one.`;
      throw new StoreError('STORE_UNKNOWN_ACCOUNT', message);
    }
    return this.find(idOrName) ?? named[0] ?? this.get(idOrName);
  }

  list(): Account[] {
    return this.#table.accounts();
  }

  /** Adds a key; undefined when the given one exists already. Throws STORE_UNKNOWN_ACCOUNT. */
  addKey(accountId: string, label: string, key: string): CreatedKey | undefined {
    this.get(accountId);
    const hash = hashKey(key);
    const row = {
      id: `key_${randomText(12)}`,
      accountId,
      prefix: shownPrefix(key),
      label,
      createdAt: this.#now(),
    };
    if (!this.#table.insertKey(row, bucketOf(hash), hash)) return undefined;
    return { id: row.id, key, prefix: row.prefix };
  }

  /** Adds a new random key. Throws STORE_UNKNOWN_ACCOUNT. */
  createKey(accountId: string, label = ''): CreatedKey {
    const created = this.addKey(accountId, label, newKey());
    if (!created) throw new Error('Two random keys of 160 bits were equal: the random source is broken.');
    return created;
  }

  keys(accountId: string): ApiKey[] {
    this.flush();
    return this.#table.keys(accountId);
  }

  /** False when there is no such key or it was revoked before. Counts from the next call on. */
  revokeKey(id: string): boolean {
    return this.#table.revokeKey(id, this.#now());
  }

  /** Name and e-mail as the provider of the sign-in says them now. */
  rename(id: string, name: string, email: string | null): void {
    this.#table.updatePerson(id, name, email);
  }

  /** Revokes every key and forgets name, e-mail, keys' names and sign-ins. The ledger stays as it is. */
  erase(id: string): void {
    this.#table.erase(id, 'deleted account', this.#now());
  }

  /**
   * The account a key belongs to; undefined when it is unknown or revoked. Asks the database each time
   * (a few microseconds), so a revocation by another process counts at once.
   */
  owner(key: string): Account | undefined {
    return this.#match(key)?.account;
  }

  /** `owner`, and remembers that the key was used now. */
  authenticate(key: string): Account | undefined {
    const match = this.#match(key);
    if (!match) return undefined;
    this.#used.set(match.keyId, this.#now());
    return match.account;
  }

  /** Writes the last uses of keys; the owner of the books calls it now and then, and at the end. */
  flush(): void {
    if (this.#used.size === 0) return;
    this.#table.writeUse(this.#used);
    this.#used.clear();
  }

  /** No early exit: every candidate is compared whole, and there is always at least one comparison. */
  #match(key: string): { keyId: string; account: Account } | undefined {
    const hash = hashKey(key);
    let found: KeyCandidate | undefined;
    timingSafeEqual(hash, nobody);
    for (const candidate of this.#table.candidates(bucketOf(hash))) {
      if (timingSafeEqual(hash, candidate.hash)) found = candidate;
    }
    if (!found || found.revokedAt !== null) return undefined;
    const { keyId, id, name, email, createdAt, deletedAt } = found;
    return { keyId, account: { id, name, email, createdAt, deletedAt } };
  }
}
