import type { AuditRow, AuditTable } from '../store/auditTable.ts';

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
  /**
   * Account of the actor. Null: with an address, an operator with the admin token; without one, an operator
   * at the machine or the service itself.
   */
  readonly actor?: string | null | undefined;
  /** Account or key that was changed. */
  readonly subject?: string | undefined;
  readonly detail?: string | undefined;
  readonly address?: string | undefined;
}

/** Who changed accounts, keys and credits: append-only, enforced by the database. */
export class AuditLog {
  readonly #table: AuditTable;
  readonly #now: () => number;

  /** `now` returns Unix milliseconds. */
  constructor(table: AuditTable, now: () => number) {
    this.#table = table;
    this.#now = now;
  }

  write({ action, actor, subject, detail, address }: AuditEvent): Promise<void> {
    return this.#table.insert({
      at: this.#now(),
      action,
      actor: actor ?? null,
      subject: subject ?? null,
      detail: detail ?? null,
      address: address ?? null,
    });
  }

  /** Newest first. `before` is the id of the oldest entry already known. */
  list(page: { readonly before?: number | undefined; readonly limit: number }): Promise<AuditRow[]> {
    return this.#table.list(page.before ?? Number.MAX_SAFE_INTEGER, page.limit);
  }
}
