import { createHmac, timingSafeEqual } from 'node:crypto';
import { type AccountRow, accountColumns, holdLiving } from '../store/accountRow.ts';
import type { Sql } from '../store/database.ts';
import { StoreError, unknownAccount } from '../store/error.ts';
import { QueryCache } from '../store/queryCache.ts';
import { sharedSecret } from '../store/secretTable.ts';
import { bucketOf, hashKey, newKey, randomText, shownPrefix } from './keyFormat.ts';

export type Account = AccountRow;

export interface ApiKey {
  readonly id: string;
  readonly accountId: string;
  /** The beginning of the key, safe to show. */
  readonly prefix: string;
  readonly label: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
}

export interface CreatedKey {
  readonly id: string;
  /** The only place where the key itself is returned. */
  readonly key: string;
  readonly prefix: string;
}

interface KeyMatch {
  readonly keyId: string;
  readonly account: Account;
}

interface KeyCandidate extends Account {
  readonly keyId: string;
  readonly hash: Buffer;
  readonly revokedAt: number | null;
}

/** Keys of an account, so that its lists and its export are bounded. */
const maxKeys = 1000;

const keyColumns = `id, account_id AS "accountId", prefix, label, created_at AS "createdAt",
  last_used_at AS "lastUsedAt", revoked_at AS "revokedAt"`;

/**
 * Runs for every request. SQLite plans a join anew for every value of a parameter that its planner sees, which takes ten
 * times as long as the look-up; it does not look into a subquery.
 */
const candidatesQuery = `SELECT api_key.id AS "keyId", api_key.hash, api_key.revoked_at AS "revokedAt", ${accountColumns}
  FROM api_key JOIN account ON account.id = api_key.account_id
  WHERE api_key.bucket = (SELECT CAST(@bucket AS BIGINT))`;

const countKeys = `SELECT count(*) AS "all", count(revoked_at) AS revoked FROM api_key WHERE account_id = @accountId`;
const forgetKeys = `DELETE FROM api_key WHERE id IN (
  SELECT id FROM api_key WHERE account_id = @accountId AND revoked_at IS NOT NULL
  ORDER BY revoked_at, id LIMIT @excess)`;

/** Compared if there is no candidate, so that unknown keys take the same path as known ones. */
const noHash = Buffer.alloc(32);

/** Accounts and their keys: the tables `account` and `api_key`. */
export class Accounts {
  readonly #sql: Sql;
  readonly #now: () => number;
  /** Last uses, by key, that are not written yet. */
  readonly #used = new Map<string, number>();
  /** Matches of keys, by the hash of the key. */
  readonly #matches: QueryCache<KeyMatch>;

  /** `now` returns Unix milliseconds. */
  constructor(sql: Sql, now: () => number) {
    this.#sql = sql;
    this.#matches = new QueryCache(sql);
    this.#now = now;
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
    const inserted = await this.#sql.run(
      `INSERT INTO account (id, name, email, created_at) VALUES (@id, @name, @email, @createdAt)
       ON CONFLICT DO NOTHING`,
      { id, name, email, createdAt: this.#now() },
    );
    return { account: await this.get(id), created: inserted === 1 };
  }

  /** Throws STORE_UNKNOWN_ACCOUNT. */
  async get(id: string): Promise<Account> {
    const account = await this.find(id);
    if (!account) throw unknownAccount(id);
    return account;
  }

  /** `get`, and locks the account until the transaction ends. */
  async lock(id: string): Promise<Account> {
    const { forUpdate } = this.#sql.dialect;
    const account = await this.#sql.get<Account>(
      `SELECT ${accountColumns} FROM account WHERE id = @id${forUpdate}`,
      { id },
    );
    if (!account) throw unknownAccount(id);
    return account;
  }

  find(id: string): Promise<Account | undefined> {
    return this.#sql.get(`SELECT ${accountColumns} FROM account WHERE id = @id`, { id });
  }

  /** Finds an account by its id, or by its name if that is unique. Rejects with STORE_UNKNOWN_ACCOUNT. */
  async resolve(idOrName: string): Promise<Account> {
    const named = await this.#sql.all<Account>(
      `SELECT ${accountColumns} FROM account WHERE name = @name ORDER BY created_at, id`,
      { name: idOrName },
    );
    const found = await this.find(idOrName);
    if (named.length > 1 && !found) {
      const message = `${named.length} accounts are named ${idOrName}: give the id of one.`;
      throw new StoreError('STORE_UNKNOWN_ACCOUNT', message);
    }
    return found ?? named[0] ?? this.get(idOrName);
  }

  /**
   * Adds a key; undefined if it exists already, for any account. Throws STORE_UNKNOWN_ACCOUNT, also for a deleted account, and
   * STORE_KEYS if it has `maxKeys` keys that are not revoked. Of revoked ones the oldest are forgotten beyond as many keys in all.
   */
  async addKey(accountId: string, label: string, key: string): Promise<CreatedKey | undefined> {
    const hash = hashKey(key);
    const [id, prefix] = [`key_${randomText(12)}`, shownPrefix(key)];
    const row = { id, accountId, prefix, label, createdAt: this.#now(), bucket: bucketOf(hash), hash };
    return this.#sql.transaction(async (sql) => {
      if (!(await holdLiving(sql, accountId))) {
        await new Accounts(sql, this.#now).get(accountId);
        throw new StoreError('STORE_UNKNOWN_ACCOUNT', `The account ${accountId} was deleted by its owner.`);
      }
      const counted = await sql.get<{ all: number; revoked: number }>(countKeys, { accountId });
      const { all, revoked } = counted ?? { all: 0, revoked: 0 };
      if (all - revoked >= maxKeys)
        throw new StoreError(
          'STORE_KEYS',
          `The account has ${maxKeys} keys, which is the most. Revoke one that is not used any more.`,
        );
      const inserted = await sql.run(
        `INSERT INTO api_key (id, account_id, bucket, hash, prefix, label, created_at)
         VALUES (@id, @accountId, @bucket, @hash, @prefix, @label, @createdAt) ON CONFLICT (hash) DO NOTHING`,
        row,
      );
      if (inserted === 0) return undefined;
      if (all >= maxKeys) await sql.run(forgetKeys, { accountId, excess: all + 1 - maxKeys });
      return { id, key, prefix };
    });
  }

  /** Adds a new random key. Throws STORE_UNKNOWN_ACCOUNT and STORE_KEYS. */
  async createKey(accountId: string, label = ''): Promise<CreatedKey> {
    const created = await this.addKey(accountId, label, newKey());
    if (!created) throw new Error('Two random keys of 160 bits were equal: the random source is broken.');
    return created;
  }

  async keys(accountId: string): Promise<ApiKey[]> {
    await this.flush();
    return this.#sql.all(
      `SELECT ${keyColumns} FROM api_key WHERE account_id = @accountId ORDER BY created_at, id`,
      { accountId },
    );
  }

  /** False if there is no such key or it was revoked before. Effective from the next call on. */
  async revokeKey(id: string): Promise<boolean> {
    const revoked = await this.#sql.run(
      'UPDATE api_key SET revoked_at = @at WHERE id = @id AND revoked_at IS NULL',
      { id, at: this.#now() },
    );
    return revoked === 1;
  }

  /** Updates name and e-mail address to the provider's current ones; false, and nothing is written, if the account is deleted. */
  async rename(id: string, name: string, email: string | null): Promise<boolean> {
    const updated = await this.#sql.run(
      'UPDATE account SET name = @name, email = @email WHERE id = @id AND deleted_at IS NULL',
      { id, name, email },
    );
    return updated === 1;
  }

  /**
   * Revokes all keys and erases name, e-mail address, labels of keys and sign-ins, in one step. The ledger stays, and a
   * keyed digest of the owner, so that what is given once per person is not given again.
   */
  async erase(id: string): Promise<void> {
    const person = await createPseudonymise(this.#sql);
    const at = this.#now();
    await this.#sql.transaction(async (sql) => {
      await sql.run(
        `UPDATE account SET name = 'deleted account', email = NULL, deleted_at = coalesce(deleted_at, @at)
         WHERE id = @id`,
        { id, at },
      );
      await sql.run(
        `UPDATE api_key SET revoked_at = coalesce(revoked_at, @at), label = '' WHERE account_id = @id`,
        { id, at },
      );
      const people = await sql.all<{ issuer: string; subject: string }>(
        'DELETE FROM identity WHERE account_id = @id RETURNING issuer, subject',
        { id },
      );
      for (const { issuer, subject } of people)
        await sql.run(
          'INSERT INTO deleted_account (person, account_id) VALUES (@person, @id) ON CONFLICT DO NOTHING',
          { person: person(issuer, subject), id },
        );
      await sql.run('DELETE FROM console_link WHERE account_id = @id', { id });
    });
  }

  /**
   * The account of a key; undefined if it is unknown or revoked, or its account deleted. A revocation elsewhere is
   * effective at once: the database is asked each time, but SQLite only after a write.
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

  /** Writes the recorded times of use; called periodically and at shutdown. A recorded time never decreases. */
  async flush(): Promise<void> {
    if (this.#used.size === 0) return;
    // Rows are locked in the same order on all nodes, so that there are no deadlocks.
    const uses = [...this.#used].toSorted(([a], [b]) => (a < b ? -1 : 1));
    this.#used.clear();
    try {
      await this.#sql.transaction(async (sql) => {
        for (const [id, at] of uses)
          await sql.run(
            `UPDATE api_key SET last_used_at = @at
             WHERE id = @id AND (last_used_at IS NULL OR last_used_at < @at)`,
            { id, at },
          );
      });
    } catch (error) {
      for (const [key, at] of uses) this.#used.set(key, Math.max(at, this.#used.get(key) ?? 0));
      throw error;
    }
  }

  #match(hash: Buffer): Promise<KeyMatch | undefined> {
    return this.#matches.get(hash.toString('latin1'), () => this.#findKey(hash));
  }

  /** No early exit: every candidate is compared completely, and there is always at least one comparison. */
  async #findKey(hash: Buffer): Promise<KeyMatch | undefined> {
    let found: KeyCandidate | undefined;
    timingSafeEqual(hash, noHash);
    const candidates = await this.#sql.all<KeyCandidate>(candidatesQuery, { bucket: bucketOf(hash) });
    for (const candidate of candidates) if (timingSafeEqual(hash, candidate.hash)) found = candidate;
    if (!found || found.revokedAt !== null || found.deletedAt !== null) return undefined;
    const { keyId, id, name, email, createdAt, deletedAt } = found;
    return { keyId, account: { id, name, email, createdAt, deletedAt } };
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
