import type { Sql } from './database.ts';

/** Rows of `identity`, `former_account` and `console_link`; src/accounts defines their meaning. */
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

  /** Links an account to those that the same person deleted before. */
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

  /** Whether there is such a link that expires after `from`, and at `to` at the latest. */
  async hasLink(hash: Buffer, from: number, to: number): Promise<boolean> {
    const found = await this.#sql.get(
      'SELECT 1 AS found FROM console_link WHERE hash = @hash AND expires_at > @from AND expires_at <= @to',
      { hash, from, to },
    );
    return found !== undefined;
  }

  /**
   * Consumes the link and returns the account it opens. Links that do not expire after `from` and by `to` are
   * removed first.
   */
  async takeLink(hash: Buffer, from: number, to: number): Promise<string | undefined> {
    await this.#sql.run('DELETE FROM console_link WHERE expires_at <= @from OR expires_at > @to', {
      from,
      to,
    });
    const taken = await this.#sql.get<{ id: string }>(
      'DELETE FROM console_link WHERE hash = @hash RETURNING account_id AS id',
      { hash },
    );
    return taken?.id;
  }
}
