import type { Database, Statement } from './sqlite.ts';

export interface AccountRow {
  readonly id: string;
  readonly name: string;
  /** Of the person who signed in with it; shown only. */
  readonly email: string | null;
  readonly createdAt: number;
  /** When its owner deleted it. */
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

const accountColumns =
  'account.id, account.name, account.email, account.created_at AS createdAt, account.deleted_at AS deletedAt';
const keyColumns = `id, account_id AS accountId, prefix, label, created_at AS createdAt,
  last_used_at AS lastUsedAt, revoked_at AS revokedAt`;

/** Rows of `account` and `api_key`; what they mean is src/accounts' business. */
export class AccountTable {
  readonly #database: Database;
  readonly #candidates: Statement<[bucket: number], KeyCandidate>;

  constructor(database: Database) {
    this.#database = database;
    this.#candidates = database.prepare(
      `SELECT api_key.id AS keyId, api_key.hash, api_key.revoked_at AS revokedAt,
              ${accountColumns}
       FROM api_key JOIN account ON account.id = api_key.account_id WHERE api_key.bucket = ?`,
    );
  }

  /** False when the id is taken. */
  insertAccount({ id, name, email, createdAt }: Omit<AccountRow, 'deletedAt'>): boolean {
    const insert = this.#database.prepare<[string, string, string | null, number]>(
      'INSERT INTO account (id, name, email, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    );
    return insert.run(id, name, email, createdAt).changes === 1;
  }

  /** Name and address as the provider says them now. */
  updatePerson(id: string, name: string, email: string | null): void {
    this.#database
      .prepare<[string, string | null, string]>('UPDATE account SET name = ?, email = ? WHERE id = ?')
      .run(name, email, id);
  }

  /** Forgets who the account belonged to and revokes its keys, at once. */
  erase(id: string, name: string, at: number): void {
    this.#database
      .transaction(() => {
        this.#database
          .prepare<[string, number, string]>(
            'UPDATE account SET name = ?, email = NULL, deleted_at = coalesce(deleted_at, ?) WHERE id = ?',
          )
          .run(name, at, id);
        this.#database
          .prepare<[number, string]>(
            "UPDATE api_key SET revoked_at = coalesce(revoked_at, ?), label = '' WHERE account_id = ?",
          )
          .run(at, id);
        this.#database.prepare<[string]>('DELETE FROM identity WHERE account_id = ?').run(id);
        this.#database.prepare<[string]>('DELETE FROM console_link WHERE account_id = ?').run(id);
      })
      .immediate();
  }

  account(id: string): AccountRow | undefined {
    return this.#database
      .prepare<[string], AccountRow>(`SELECT ${accountColumns} FROM account WHERE id = ?`)
      .get(id);
  }

  accounts(): AccountRow[] {
    return this.#database
      .prepare<[], AccountRow>(`SELECT ${accountColumns} FROM account ORDER BY created_at, id`)
      .all();
  }

  accountsNamed(name: string): AccountRow[] {
    return this.#database
      .prepare<[string], AccountRow>(
        `SELECT ${accountColumns} FROM account WHERE name = ? ORDER BY created_at, id`,
      )
      .all(name);
  }

  /** False when this very key exists already, for whatever account. */
  insertKey(row: Omit<KeyRow, 'lastUsedAt' | 'revokedAt'>, bucket: number, hash: Buffer): boolean {
    const insert = this.#database.prepare<[string, string, number, Buffer, string, string, number]>(
      `INSERT INTO api_key (id, account_id, bucket, hash, prefix, label, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING`,
    );
    return (
      insert.run(row.id, row.accountId, bucket, hash, row.prefix, row.label, row.createdAt).changes === 1
    );
  }

  keys(accountId: string): KeyRow[] {
    return this.#database
      .prepare<[string], KeyRow>(
        `SELECT ${keyColumns} FROM api_key WHERE account_id = ? ORDER BY created_at, id`,
      )
      .all(accountId);
  }

  candidates(bucket: number): KeyCandidate[] {
    return this.#candidates.all(bucket);
  }

  /** False when there is no such key or it was revoked before. */
  revokeKey(id: string, at: number): boolean {
    const revoke = this.#database.prepare<[number, string]>(
      'UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL',
    );
    return revoke.run(at, id).changes === 1;
  }

  /** One transaction for all; a time never moves back. */
  writeUse(uses: ReadonlyMap<string, number>): void {
    const update = this.#database.prepare<{ id: string; at: number }>(
      'UPDATE api_key SET last_used_at = max(coalesce(last_used_at, 0), @at) WHERE id = @id',
    );
    this.#database
      .transaction(() => {
        for (const [id, at] of uses) update.run({ id, at });
      })
      .immediate();
  }
}
