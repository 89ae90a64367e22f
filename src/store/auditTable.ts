import type { Database } from './sqlite.ts';

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

/** Rows of `audit`, which are only ever added. */
export class AuditTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  insert(row: Omit<AuditRow, 'id'>): void {
    this.#database
      .prepare<[Omit<AuditRow, 'id'>]>(
        `INSERT INTO audit (at, actor, action, subject, detail, address)
         VALUES (@at, @actor, @action, @subject, @detail, @address)`,
      )
      .run(row);
  }

  /** Newest first, those older than entry `before`. */
  list(before: number, limit: number): AuditRow[] {
    return this.#database
      .prepare<[number, number], AuditRow>(
        'SELECT id, at, actor, action, subject, detail, address FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?',
      )
      .all(before, limit);
  }
}
