import type { Database } from './sqlite.ts';

/** Rows of `identity` and `console_link`; what they mean is src/accounts' business. */
export class SignInTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  transaction<T>(work: () => T): T {
    return this.#database.transaction(work).immediate();
  }

  accountOf(issuer: string, subject: string): string | undefined {
    return this.#database
      .prepare<[string, string], { id: string }>(
        'SELECT account_id AS id FROM identity WHERE issuer = ? AND subject = ?',
      )
      .get(issuer, subject)?.id;
  }

  insertIdentity(issuer: string, subject: string, accountId: string, at: number): void {
    this.#database
      .prepare<[string, string, string, number]>(
        'INSERT INTO identity (issuer, subject, account_id, created_at) VALUES (?, ?, ?, ?)',
      )
      .run(issuer, subject, accountId, at);
  }

  insertLink(hash: Buffer, accountId: string, expiresAt: number): void {
    this.#database
      .prepare<[Buffer, string, number]>(
        'INSERT INTO console_link (hash, account_id, expires_at) VALUES (?, ?, ?)',
      )
      .run(hash, accountId, expiresAt);
  }

  /** Takes the link away; the account it opens when it is still good. Those that ran out go with it. */
  takeLink(hash: Buffer, now: number): string | undefined {
    return this.transaction(() => {
      this.#database.prepare<[number]>('DELETE FROM console_link WHERE expires_at <= ?').run(now);
      return this.#database
        .prepare<[Buffer], { id: string }>(
          'DELETE FROM console_link WHERE hash = ? RETURNING account_id AS id',
        )
        .get(hash)?.id;
    });
  }
}
