import { clockOf, type Now } from '../store/clock.ts';
import type { Sql } from '../store/database.ts';
import { unknownAccount } from '../store/error.ts';
import type { Entry } from './entries.ts';
import type { QuarterCredits } from './price.ts';

export type NewEntry = Pick<Entry, 'kind' | 'amount'> &
  Partial<Pick<Entry, 'payment' | 'requestId' | 'reservationId' | 'reference' | 'note' | 'uncertainty'>>;

/**
 * One change of one account: a database transaction, or part of one, that excludes all other ledger
 * transactions of the account on any server, with one reading of the clock for everything that it writes.
 */
export class LedgerTransaction {
  readonly sql: Sql;
  readonly accountId: string;
  /** Unix milliseconds. */
  readonly at: number;
  #balance: QuarterCredits;

  private constructor(sql: Sql, accountId: string, { at, balance }: { at: number; balance: QuarterCredits }) {
    this.sql = sql;
    this.accountId = accountId;
    this.at = at;
    this.#balance = balance;
  }

  /** Rejects with STORE_UNKNOWN_ACCOUNT. `work` may run again, as `Sql.transaction` says. */
  static run<T>(
    sql: Sql,
    now: Now | undefined,
    accountId: string,
    work: (transaction: LedgerTransaction) => Promise<T>,
  ): Promise<T> {
    return sql.transaction(async (inner) => {
      const clock = clockOf(inner, now);
      const account = await inner.get<{ balance: QuarterCredits; at: number }>(
        `SELECT balance, ${clock.text} AS at FROM account WHERE id = @accountId${inner.dialect.forUpdate}`,
        { accountId, ...clock.values },
      );
      if (!account) throw unknownAccount(accountId);
      return work(new LedgerTransaction(inner, accountId, account));
    });
  }

  get balance(): QuarterCredits {
    return this.#balance;
  }

  /** Adds an entry and returns its number. Only here a balance changes; the caller checked that it suffices. */
  async append(entry: NewEntry): Promise<number> {
    const { sql, accountId, at } = this;
    const moved = await sql.get<{ balance: QuarterCredits }>(
      'UPDATE account SET balance = balance + @amount WHERE id = @accountId RETURNING balance',
      { accountId, amount: entry.amount },
    );
    if (!moved) throw unknownAccount(accountId);
    this.#balance = moved.balance;
    const inserted = await sql.get<{ id: number }>(
      `INSERT INTO entry
         (account_id, at, kind, amount, balance, payment, request_id, reservation_id, reference, note, uncertainty)
       VALUES
         (@accountId, @at, @kind, @amount, @balance, @payment, @requestId, @reservationId, @reference, @note, @uncertainty)
       RETURNING id`,
      {
        payment: null,
        requestId: null,
        reservationId: null,
        reference: null,
        note: null,
        uncertainty: null,
        ...entry,
        accountId,
        at,
        balance: moved.balance,
      },
    );
    if (!inserted) throw new Error('An entry was written without a number.');
    return inserted.id;
  }
}
