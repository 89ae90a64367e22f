import type { Now } from '../store/clock.ts';
import type { Sql } from '../store/database.ts';
import { StoreError } from '../store/error.ts';
import type { EntryKind } from './entries.ts';
import { ofOwner } from './freePreviewUse.ts';
import { LedgerTransaction } from './ledgerTransaction.ts';
import type { QuarterCredits } from './price.ts';
import * as transitions from './settlement.ts';

export interface PostRequest {
  readonly kind: 'grant' | 'purchase' | 'adjust';
  /** Greater than 0; `adjust` may be negative, but the balance never falls below 0. */
  readonly amount: QuarterCredits;
  /** Identifies the external event. The same kind and reference count once per account. */
  readonly reference?: string;
  readonly note?: string;
}

export type PostOutcome =
  | { readonly outcome: 'posted' | 'duplicate'; readonly balance: QuarterCredits }
  | { readonly outcome: 'insufficient'; readonly balance: QuarterCredits };

/**
 * Credits moved by a person or an external event, each in one ledger transaction: of its own, or part of the
 * transaction of `sql`. src/commands writes the audit events.
 */
export class Postings {
  protected readonly now: Now | undefined;
  readonly #sql: Sql;

  constructor(sql: Sql, now: Now | undefined) {
    this.#sql = sql;
    this.now = now;
  }

  /** Rejects with STORE_UNKNOWN_ACCOUNT, or STORE_REFERENCE_REUSED for a known reference of another amount. */
  async post(accountId: string, request: PostRequest): Promise<PostOutcome> {
    const { kind, amount, reference = null, note = null } = request;
    if (kind === 'adjust' ? amount === 0 : amount <= 0) throw new RangeError(`Not a ${kind}: ${amount}.`);
    return LedgerTransaction.run(this.#sql, this.now, accountId, async (transaction) => {
      const { sql, balance } = transaction;
      const known = reference === null ? undefined : await byReference(sql, accountId, kind, reference);
      if (known !== undefined) {
        if (known === amount) return { outcome: 'duplicate', balance };
        const message = `The ${kind} ${reference} of account ${accountId} was already made with another amount.`;
        throw new StoreError('STORE_REFERENCE_REUSED', message);
      }
      if (balance + amount < 0) return { outcome: 'insufficient', balance };
      await transaction.append({ kind, amount, reference, note });
      return { outcome: 'posted', balance: transaction.balance };
    });
  }

  /** Whether this grant was counted for the account or one that its owner deleted: it is given once per person. */
  async wasGiven(accountId: string, reference: string): Promise<boolean> {
    const found = await this.#sql.get(
      `SELECT 1 AS given FROM entry WHERE ${ofOwner} AND kind = 'grant' AND reference = @reference`,
      { accountId, reference },
    );
    return found !== undefined;
  }

  /** Refunds a charged call, also a free one, as `transitions.refund` says. */
  refund(accountId: string, reservationId: number, note?: string): Promise<boolean> {
    return LedgerTransaction.run(this.#sql, this.now, accountId, (transaction) =>
      transitions.refund(transaction, reservationId, note ?? null),
    );
  }
}

async function byReference(
  sql: Sql,
  accountId: string,
  kind: EntryKind,
  reference: string,
): Promise<QuarterCredits | undefined> {
  const found = await sql.get<{ amount: QuarterCredits }>(
    'SELECT amount FROM entry WHERE account_id = @accountId AND kind = @kind AND reference = @reference',
    { accountId, kind, reference },
  );
  return found?.amount;
}
