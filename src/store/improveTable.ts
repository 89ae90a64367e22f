import type { Database } from './sqlite.ts';

export interface ImproveRow {
  /** UUID v4. */
  readonly id: string;
  readonly accountId: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** Name in the bucket. */
  readonly object: string;
  /** 'image/jpeg' and the like, by content. */
  readonly type: string;
  readonly bytes: number;
  readonly width: number;
  readonly height: number;
  /** Of the bytes, hexadecimal. */
  readonly sha256: string;
  readonly filename: string | null;
  readonly tag: string | null;
}

export interface ImproveQuery {
  readonly accountId?: string | undefined;
  readonly tag?: string | undefined;
  /** Half open, Unix milliseconds. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

const columns = `id, account_id AS accountId, at, object, type, bytes, width, height, sha256, filename, tag`;

/** Rows of `improve_image`; what they mean is src/improve's business. */
export class ImproveTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** False, and nothing done, when the account has `limit` rows since `since`. */
  insertPending(row: ImproveRow, since: number, limit: number): boolean {
    const insert = this.#database.prepare<{ since: number; limit: number } & ImproveRow>(
      `INSERT INTO improve_image
         (id, account_id, at, object, stored, type, bytes, width, height, sha256, filename, tag)
       SELECT @id, @accountId, @at, @object, 0, @type, @bytes, @width, @height, @sha256, @filename, @tag
       WHERE (SELECT count(*) FROM improve_image WHERE account_id = @accountId AND at >= @since) < @limit`,
    );
    return insert.run({ ...row, since, limit }).changes === 1;
  }

  markStored(id: string): void {
    this.#database.prepare<[string]>('UPDATE improve_image SET stored = 1 WHERE id = ?').run(id);
  }

  /** Rows whose bytes never arrived, made before `before`. */
  pending(before: number): ImproveRow[] {
    return this.#database
      .prepare<[number], ImproveRow>(`SELECT ${columns} FROM improve_image WHERE stored = 0 AND at < ?`)
      .all(before);
  }

  get(id: string): ImproveRow | undefined {
    return this.#database
      .prepare<[string], ImproveRow>(`SELECT ${columns} FROM improve_image WHERE id = ? AND stored = 1`)
      .get(id);
  }

  /** Oldest first. */
  list({ accountId, tag, from, to }: ImproveQuery): ImproveRow[] {
    return this.#database
      .prepare<Record<'accountId' | 'tag', string | null> & Record<'from' | 'to', number>, ImproveRow>(
        `SELECT ${columns} FROM improve_image
         WHERE stored = 1 AND at >= @from AND at < @to
           AND (@accountId IS NULL OR account_id = @accountId) AND (@tag IS NULL OR tag = @tag)
         ORDER BY at, id`,
      )
      .all({
        accountId: accountId ?? null,
        tag: tag ?? null,
        from: from ?? 0,
        to: to ?? Number.MAX_SAFE_INTEGER,
      });
  }

  delete(id: string): void {
    this.#database.prepare<[string]>('DELETE FROM improve_image WHERE id = ?').run(id);
  }
}
