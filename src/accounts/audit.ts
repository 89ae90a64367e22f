import type { Sql } from '../store/database.ts';

type AuditAction =
  | 'sign-in'
  | 'sign-out'
  | 'account.create'
  | 'account.delete'
  | 'key.create'
  | 'key.revoke'
  | 'credits.grant'
  | 'credits.adjust'
  | 'credits.purchase'
  | 'credits.refund'
  | 'image.delete'
  | 'data.export';

export interface AuditEvent {
  readonly action: AuditAction;
  /** Null: with an address, an operator with the admin token; else one at the machine, or the service itself. */
  readonly actor?: string | null | undefined;
  /** Account or key that was changed. */
  readonly subject?: string | undefined;
  readonly detail?: string | undefined;
  readonly address?: string | undefined;
}

/** An event as it is stored. */
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

/** Who changed accounts, keys and credits: append-only, enforced by the database. */
export class AuditLog {
  readonly #sql: Sql;
  readonly #now: () => number;

  /** `now` returns Unix milliseconds. */
  constructor(sql: Sql, now: () => number) {
    this.#sql = sql;
    this.#now = now;
  }

  async write({ action, actor, subject, detail, address }: AuditEvent): Promise<void> {
    await this.#sql.run(
      `INSERT INTO audit (at, actor, action, subject, detail, address)
       VALUES (@at, @actor, @action, @subject, @detail, @address)`,
      {
        at: this.#now(),
        action,
        actor: actor ?? null,
        subject: subject ?? null,
        detail: detail ?? null,
        address: address ?? null,
      },
    );
  }

  /** Newest first. `before` is the id of the oldest entry already known. */
  list({
    before = Number.MAX_SAFE_INTEGER,
    limit,
  }: {
    readonly before?: number | undefined;
    readonly limit: number;
  }): Promise<AuditRow[]> {
    return this.#sql.all(
      `SELECT id, at, actor, action, subject, detail, address FROM audit WHERE id < @before
       ORDER BY id DESC LIMIT @limit`,
      { before, limit },
    );
  }
}
