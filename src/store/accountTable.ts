import type { Sql } from './database.ts';

export interface AccountRow {
  readonly id: string;
  readonly name: string;
  /** E-mail address of the person who signed in; for display only. */
  readonly email: string | null;
  readonly createdAt: number;
  /** Unix milliseconds of the deletion by its owner. */
  readonly deletedAt: number | null;
}

export interface KeyRow {
  readonly id: string;
  readonly accountId: string;
  /** The beginning of the key, safe to show. */
  readonly prefix: string;
  readonly label: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
}

export interface KeyCandidate extends AccountRow {
  readonly keyId: string;
  readonly hash: Buffer;
  readonly revokedAt: number | null;
}

/** The columns of `account`, as `AccountRow` names them. */
export const accountColumns = `account.id, account.name, account.email, account.created_at AS "createdAt",
  account.deleted_at AS "deletedAt"`;
const keyColumns = `id, account_id AS "accountId", prefix, label, created_at AS "createdAt",
  last_used_at AS "lastUsedAt", revoked_at AS "revokedAt"`;

/**
 * Runs for every request. SQLite plans a join anew for every value of a parameter that its planner sees, which takes ten
 * times as long as the look-up; it does not look into a subquery.
 */
const candidatesQuery = `SELECT api_key.id AS "keyId", api_key.hash, api_key.revoked_at AS "revokedAt", ${accountColumns}
  FROM api_key JOIN account ON account.id = api_key.account_id
  WHERE api_key.bucket = (SELECT CAST(@bucket AS BIGINT))`;

/**
 * Locks the row of an account until the transaction ends; false if there is none or its owner deleted it.
 * Whatever adds to an account calls this first: a deletion, on any node, then either comes before and is
 * seen, or comes after and includes the addition.
 */
export async function holdLiving(sql: Sql, id: string): Promise<boolean> {
  const held = await sql.get(
    `SELECT id FROM account WHERE id = @id AND deleted_at IS NULL${sql.dialect.forUpdate}`,
    { id },
  );
  return held !== undefined;
}

/** Keys of an account, so that its lists and its export are bounded. */
export const maxKeys = 1000;

const countKeys = `SELECT count(*) AS "all", count(revoked_at) AS revoked FROM api_key WHERE account_id = @accountId`;
const forgetKeys = `DELETE FROM api_key WHERE id IN (
  SELECT id FROM api_key WHERE account_id = @accountId AND revoked_at IS NOT NULL
  ORDER BY revoked_at, id LIMIT @excess)`;

/** Rows of `account` and `api_key`; src/accounts defines their meaning. */
export class AccountTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** False if the id is taken. */
  async insertAccount({ id, name, email, createdAt }: Omit<AccountRow, 'deletedAt'>): Promise<boolean> {
    const inserted = await this.#sql.run(
      `INSERT INTO account (id, name, email, created_at) VALUES (@id, @name, @email, @createdAt)
       ON CONFLICT DO NOTHING`,
      { id, name, email, createdAt },
    );
    return inserted === 1;
  }

  /**
   * Updates name and address to the provider's current ones. False, and nothing is written, if the account is
   * deleted.
   */
  async updatePerson(id: string, name: string, email: string | null): Promise<boolean> {
    const updated = await this.#sql.run(
      'UPDATE account SET name = @name, email = @email WHERE id = @id AND deleted_at IS NULL',
      { id, name, email },
    );
    return updated === 1;
  }

  /**
   * Erases who the account belonged to and revokes its keys, in one step. Of its people only their pseudonyms
   * remain.
   */
  erase(
    id: string,
    { name, at, person }: { name: string; at: number; person: (issuer: string, subject: string) => Buffer },
  ): Promise<void> {
    return this.#sql.transaction(async (sql) => {
      await sql.run(
        `UPDATE account SET name = @name, email = NULL, deleted_at = coalesce(deleted_at, @at) WHERE id = @id`,
        { id, name, at },
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

  account(id: string): Promise<AccountRow | undefined> {
    return this.#sql.get(`SELECT ${accountColumns} FROM account WHERE id = @id`, { id });
  }

  /** Locks the row until the transaction ends. */
  lockedAccount(id: string): Promise<AccountRow | undefined> {
    const { forUpdate } = this.#sql.dialect;
    return this.#sql.get(`SELECT ${accountColumns} FROM account WHERE id = @id${forUpdate}`, { id });
  }

  accountsNamed(name: string): Promise<AccountRow[]> {
    return this.#sql.all(`SELECT ${accountColumns} FROM account WHERE name = @name ORDER BY created_at, id`, {
      name,
    });
  }

  /**
   * 'known': this very key exists already, for any account. 'no account': unknown or deleted. 'full': the account has
   * `maxKeys` keys that are not revoked. Of revoked ones the oldest are forgotten beyond as many keys in all.
   */
  insertKey(
    row: Omit<KeyRow, 'lastUsedAt' | 'revokedAt'>,
    bucket: number,
    hash: Buffer,
  ): Promise<'inserted' | 'known' | 'no account' | 'full'> {
    return this.#sql.transaction(async (sql) => {
      const { accountId } = row;
      if (!(await holdLiving(sql, accountId))) return 'no account';
      const counted = await sql.get<{ all: number; revoked: number }>(countKeys, { accountId });
      const { all, revoked } = counted ?? { all: 0, revoked: 0 };
      if (all - revoked >= maxKeys) return 'full';
      const inserted = await sql.run(
        `INSERT INTO api_key (id, account_id, bucket, hash, prefix, label, created_at)
         VALUES (@id, @accountId, @bucket, @hash, @prefix, @label, @createdAt) ON CONFLICT (hash) DO NOTHING`,
        { ...row, bucket, hash },
      );
      if (inserted === 0) return 'known';
      if (all >= maxKeys) await sql.run(forgetKeys, { accountId, excess: all + 1 - maxKeys });
      return 'inserted';
    });
  }

  keys(accountId: string): Promise<KeyRow[]> {
    return this.#sql.all(
      `SELECT ${keyColumns} FROM api_key WHERE account_id = @accountId ORDER BY created_at, id`,
      { accountId },
    );
  }

  candidates(bucket: number): Promise<KeyCandidate[]> {
    return this.#sql.all(candidatesQuery, { bucket });
  }

  /** False if there is no such key or it was revoked before. */
  async revokeKey(id: string, at: number): Promise<boolean> {
    const revoked = await this.#sql.run(
      'UPDATE api_key SET revoked_at = @at WHERE id = @id AND revoked_at IS NULL',
      { id, at },
    );
    return revoked === 1;
  }

  /** One transaction for all; a recorded time never decreases. */
  writeUse(uses: ReadonlyMap<string, number>): Promise<void> {
    // Rows are locked in the same order on all nodes, so that there are no deadlocks.
    const ordered = [...uses].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return this.#sql.transaction(async (sql) => {
      for (const [id, at] of ordered) {
        await sql.run(
          `UPDATE api_key SET last_used_at = @at
           WHERE id = @id AND (last_used_at IS NULL OR last_used_at < @at)`,
          { id, at },
        );
      }
    });
  }
}
