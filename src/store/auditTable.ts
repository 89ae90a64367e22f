import type { Sql } from './database.ts';

export interface AuditRow {
  readonly id: number;
  /** Unix milliseconds. */
  readonly at: number;
  readonly actor: string | null;
  readonly action: string;
  readonly subject: string | null;
  readonly detail: string | null;
  readonly address: string | null;
}

/** Rows of `audit`, which is append-only. */
export class AuditTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async insert(row: Omit<AuditRow, 'id'>): Promise<void> {
    await this.#sql.run(
      `INSERT INTO audit (at, actor, action, subject, detail, address)
       VALUES (@at, @actor, @action, @subject, @detail, @address)`,
      { ...row },
    );
  }

  /** Newest first, those older than entry `before`. */
  list(before: number, limit: number): Promise<AuditRow[]> {
    return this.#sql.all(
      `SELECT id, at, actor, action, subject, detail, address FROM audit WHERE id < @before
       ORDER BY id DESC LIMIT @limit`,
      { before, limit },
    );
  }
}
