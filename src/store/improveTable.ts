import { holdLiving } from './accountRow.ts';
import type { Sql } from './database.ts';
import { cursorValues, type TimedPage } from './page.ts';

export interface ImproveRow {
  /** UUID v4. */
  readonly id: string;
  readonly accountId: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** Name in the bucket. */
  readonly object: string;
  /** Media type by content, for example 'image/jpeg'. */
  readonly type: string;
  readonly bytes: number;
  readonly width: number;
  readonly height: number;
  /** SHA-256 of the bytes, hexadecimal. */
  readonly sha256: string;
  readonly filename: string | null;
  readonly tag: string | null;
}

export interface ImproveQuery {
  readonly accountId?: string | undefined;
  readonly tag?: string | undefined;
  /** Half-open interval, Unix milliseconds. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

const columns = `id, account_id AS "accountId", at, object, type, bytes, width, height, sha256, filename, tag`;

/** Rows of `improve_image`; src/improve defines their meaning. */
export class ImproveTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** 'full', and nothing is done: it has `limit` rows since `since`; 'no account': unknown or deleted. */
  insertPending(row: ImproveRow, since: number, limit: number): Promise<'inserted' | 'full' | 'no account'> {
    const { accountId } = row;
    return this.#sql.transaction(async (sql) => {
      // Concurrent calls of one account, on any node, are counted one after the other.
      if (!(await holdLiving(sql, accountId))) return 'no account';
      if ((await this.countSince(accountId, since, sql)) >= limit) return 'full';
      await sql.run(
        `INSERT INTO improve_image
           (id, account_id, at, object, stored, type, bytes, width, height, sha256, filename, tag)
         VALUES (@id, @accountId, @at, @object, 0, @type, @bytes, @width, @height, @sha256, @filename, @tag)`,
        { ...row },
      );
      return 'inserted';
    });
  }

  async countSince(accountId: string, since: number, sql: Sql = this.#sql): Promise<number> {
    const counted = await sql.get<{ rows: number }>(
      'SELECT count(*) AS rows FROM improve_image WHERE account_id = @accountId AND at >= @since',
      { accountId, since },
    );
    return counted?.rows ?? 0;
  }

  /** False, and nothing is done, if the account was deleted meanwhile, its row included. */
  markStored({ id, accountId }: Pick<ImproveRow, 'id' | 'accountId'>): Promise<boolean> {
    return this.#sql.transaction(async (sql) => {
      if (!(await holdLiving(sql, accountId))) return false;
      return (await sql.run('UPDATE improve_image SET stored = 1 WHERE id = @id', { id })) === 1;
    });
  }

  /** Rows made before `before` whose bytes never arrived or must be removed, and all rows of deleted accounts. */
  pending(before: number): Promise<ImproveRow[]> {
    return this.#sql.all(
      `SELECT ${columns} FROM improve_image WHERE (stored = 0 AND at < @before)
         OR account_id IN (SELECT id FROM account WHERE deleted_at IS NOT NULL)`,
      { before },
    );
  }

  /** Oldest first. */
  list({ accountId, tag, from, to }: ImproveQuery): Promise<ImproveRow[]> {
    return this.#sql.all(
      `SELECT ${columns} FROM improve_image
       WHERE stored = 1 AND at >= @from AND at < @to
         AND (CAST(@accountId AS TEXT) IS NULL OR account_id = @accountId)
         AND (CAST(@tag AS TEXT) IS NULL OR tag = @tag)
       ORDER BY at, id`,
      {
        accountId: accountId ?? null,
        tag: tag ?? null,
        from: from ?? 0,
        to: to ?? Number.MAX_SAFE_INTEGER,
      },
    );
  }

  /** Newest first, those after the one at `before`. */
  page(accountId: string, { before, limit }: TimedPage): Promise<ImproveRow[]> {
    return this.#sql.all(
      `SELECT ${columns} FROM improve_image
       WHERE stored = 1 AND account_id = @accountId AND (at, id) < (@beforeAt, @beforeId)
       ORDER BY at DESC, id DESC LIMIT @limit`,
      { accountId, limit, ...cursorValues(before) },
    );
  }

  /** Hides the image until bytes and row are removed; undefined if there is none or it was hidden before. */
  hide(id: string): Promise<ImproveRow | undefined> {
    return this.#sql.get(
      `UPDATE improve_image SET stored = 0 WHERE id = @id AND stored = 1 RETURNING ${columns}`,
      { id },
    );
  }

  hideAll(accountId: string): Promise<ImproveRow[]> {
    return this.#sql.all(
      `UPDATE improve_image SET stored = 0 WHERE account_id = @accountId AND stored = 1 RETURNING ${columns}`,
      { accountId },
    );
  }

  /** Also returns an image that is hidden or still being stored. */
  any(id: string): Promise<ImproveRow | undefined> {
    return this.#sql.get(`SELECT ${columns} FROM improve_image WHERE id = @id`, { id });
  }

  async delete(id: string): Promise<void> {
    await this.#sql.run('DELETE FROM improve_image WHERE id = @id', { id });
  }
}
