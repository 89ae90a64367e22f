import type { Sql } from './database.ts';

/** Rows of `identity`, `former_account` and `console_link`; what they mean is src/accounts' business. */
export class SignInTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async accountOf(issuer: string, subject: string): Promise<string | undefined> {
    const found = await this.#sql.get<{ id: string }>(
      'SELECT account_id AS id FROM identity WHERE issuer = @issuer AND subject = @subject',
      { issuer, subject },
    );
    return found?.id;
  }

  async insertIdentity(issuer: string, subject: string, accountId: string, at: number): Promise<void> {
    await this.#sql.run(
      `INSERT INTO identity (issuer, subject, account_id, created_at)
       VALUES (@issuer, @subject, @accountId, @at)`,
      { issuer, subject, accountId, at },
    );
  }

  /** Writes down which accounts this person deleted before this one. */
  async insertFormer(accountId: string, person: Buffer): Promise<void> {
    await this.#sql.run(
      `INSERT INTO former_account (account_id, former_id)
       SELECT @accountId, account_id FROM deleted_account WHERE person = @person ON CONFLICT DO NOTHING`,
      { accountId, person },
    );
  }

  async insertLink(hash: Buffer, accountId: string, expiresAt: number): Promise<void> {
    await this.#sql.run(
      'INSERT INTO console_link (hash, account_id, expires_at) VALUES (@hash, @accountId, @expiresAt)',
      { hash, accountId, expiresAt },
    );
  }

  /** Takes the link away; the account it opens when it is still good. Those that ran out go with it. */
  takeLink(hash: Buffer, now: number): Promise<string | undefined> {
    return this.#sql.transaction(async (sql) => {
      await sql.run('DELETE FROM console_link WHERE expires_at <= @now', { now });
      const taken = await sql.get<{ id: string }>(
        'DELETE FROM console_link WHERE hash = @hash RETURNING account_id AS id',
        { hash },
      );
      return taken?.id;
    });
  }
}
