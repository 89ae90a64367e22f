import { randomUUID } from 'node:crypto';
import { type ChargedFor, contentOfCharge, forgetCharges } from '../idempotency/chargedContent.ts';
import type { ChargeHandle } from '../idempotency/sharedResult.ts';
import { type Now, readClock } from '../store/clock.ts';
import type { Database } from '../store/database.ts';
import { InDoubt, isUnavailable, unknownAccount } from '../store/error.ts';
import { QueryCache } from '../store/queryCache.ts';
import { type AccountBalance, type AccountQuery, listBalances } from './accountList.ts';
import {
  dayOf,
  type Entry,
  type EntryKind,
  type NewestFirstPage,
  type Span,
  type StatementPage,
  statement,
  statementNewestFirst,
  thousandthsOf,
  type UsageRow,
  usage,
} from './entries.ts';
import { freeUse, monthOf, usedInMonth } from './freePreviewUse.ts';
import { LedgerTransaction } from './ledgerTransaction.ts';
import { Postings } from './postings.ts';
import type { BillingOptions, QuarterCredits, Tier } from './price.ts';
import { RetryQueue } from './retryQueue.ts';
import * as transitions from './settlement.ts';
import type { Balance, Reservation, Reservations, ReserveRequest, Settlement } from './types.ts';
import { contradictions } from './verify.ts';

export interface LedgerOptions {
  readonly billing: BillingOptions;
  /** Replaces the database's clock; Unix milliseconds. */
  readonly now?: Now | undefined;
  /** Id of the server that works on the answers. */
  readonly node?: string | undefined;
  /** Called if an answer can be neither delivered nor released. What it throws rejects the call; a server logs. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Credits added to accounts (`in`) or taken from them (`out`) other than by use; amounts are greater than 0. */
interface Booked {
  readonly kind: Extract<EntryKind, 'grant' | 'purchase' | 'adjust' | 'refund'>;
  readonly direction: 'in' | 'out';
  readonly amount: QuarterCredits;
}

interface AnswerState {
  readonly answer: string;
  readonly accountId: string;
  charge: number | undefined;
}

const fail = (error: unknown) => {
  throw error;
};

/** Unreachable accounts after which a pass over all answers stops: each costs seconds. */
const maxUnavailable = 3;

/**
 * The ledger. Every ledger transaction is one database transaction that locks the row of its account: the entry, the
 * balance and the open answers change together or not at all, on every node. A balance is the sum of its entries' amounts.
 * What becomes of an answer is decided in settlement.ts.
 */
export class Ledger extends Postings implements Reservations {
  readonly #database: Database;
  readonly #billing: BillingOptions;
  readonly #node: string | null;
  readonly #onError: (error: unknown) => void;
  readonly #retries: RetryQueue;
  readonly #validCharges: QueryCache<true>;

  constructor(database: Database, { billing, now, node, onError = fail }: LedgerOptions) {
    super(database, now);
    this.#database = database;
    this.#billing = billing;
    this.#node = node ?? null;
    this.#onError = onError;
    this.#retries = new RetryQueue(onError);
    this.#validCharges = new QueryCache(database);
  }

  /** Rejects with STORE_UNKNOWN_ACCOUNT. */
  async quote(accountId: string, request: Omit<ReserveRequest, 'requestId'>): Promise<Tier> {
    const { tier } = await this.#transaction(accountId, (transaction) =>
      transitions.quote(transaction, request, this.#billing),
    );
    return tier;
  }

  /** Rejects with STORE_UNKNOWN_ACCOUNT. */
  async reserve(accountId: string, request: ReserveRequest): Promise<Reservation> {
    const answer = this.#describeAnswer();
    const { id, tier, payment } = await this.#begin(accountId, answer.id, (transaction) =>
      transitions.reserve(transaction, answer, request, this.#billing),
    );
    const state: AnswerState = { answer: answer.id, accountId, charge: undefined };
    let settling: Promise<Settlement> | undefined;
    return {
      id,
      tier,
      payment,
      settle: (uncertainty) => {
        settling ??= this.#transaction(accountId, (transaction) =>
          transitions.settle(transaction, answer, id, request, this.#billing, thousandthsOf(uncertainty)),
        ).then((settlement) => {
          state.charge = settlement.charge;
          return settlement;
        });
        return settling;
      },
      ...this.#answer(state),
    };
  }

  async addAnswer(charge: number, isFor: (paid: ChargedFor) => boolean): Promise<ChargeHandle | undefined> {
    const paid = await contentOfCharge(this.#database, charge);
    if (!paid || !isFor(paid)) return undefined;
    const { accountId } = paid;
    const answer = this.#describeAnswer();
    const valid = await this.#begin(accountId, answer.id, (transaction) =>
      transitions.addAnswer(transaction, answer, charge),
    );
    return valid ? this.#answer({ answer: answer.id, accountId, charge }) : undefined;
  }

  async balance(accountId: string): Promise<Balance> {
    const month = monthOf(await readClock(this.#database, this.now));
    const found = await this.#database.get<{ credits: QuarterCredits; used: number }>(
      `SELECT balance AS credits, ${usedInMonth('@accountId')} AS used FROM account WHERE id = @accountId`,
      { accountId, month },
    );
    if (!found) throw unknownAccount(accountId);
    const { credits, used } = found;
    return { credits, freeCalls: Math.max(0, this.#billing.freePreviews.perMonth - used) };
  }

  /**
   * Retries deliveries and releases that failed, and ends what expired: a reservation is released, a settled answer counts
   * as delivered. Resolves with the number that expired.
   */
  async sweep(): Promise<number> {
    await this.#retries.run();
    const at = await readClock(this.#database, this.now);
    await forgetCharges(this.#database, at);
    return this.#endAll(await transitions.expired(this.#database, at), (transaction, id) =>
      transitions.expire(transaction, id),
    );
  }

  /**
   * Releases the answers of servers that are gone. Their charges are refunded unless another server has an answer with
   * them in progress. Resolves with the number that ended.
   */
  async recover(): Promise<number> {
    return this.#endAll(await transitions.orphaned(this.#database), (transaction, id) =>
      transitions.release(transaction, id, 'server stopped'),
    );
  }

  /** Accounts with what they have left, newest first: all, or a page of them. */
  async listBalances(query: AccountQuery = {}): Promise<AccountBalance[]> {
    const { perMonth } = this.#billing.freePreviews;
    const month = monthOf(await readClock(this.#database, this.now));
    return listBalances(this.#database, { month, perMonth }, query);
  }

  /** The account's entries, newest last. */
  statement(accountId: string, page: StatementPage = {}): Promise<Entry[]> {
    return statement(this.#database, accountId, page);
  }

  /** The same entries newest first, also of one kind only: a page for people. */
  statementNewestFirst(accountId: string, page: NewestFirstPage = {}): Promise<Entry[]> {
    return statementNewestFirst(this.#database, accountId, page);
  }

  /** Free previews that are left; the day never has more than the month. */
  async freePreviews(
    accountId: string,
  ): Promise<{ readonly leftToday: number; readonly leftThisMonth: number }> {
    const { perMonth, perDay } = this.#billing.freePreviews;
    const at = await readClock(this.#database, this.now);
    const leftThisMonth = Math.max(0, perMonth - (await freeUse(this.#database, accountId, monthOf(at))));
    if (perDay === 0) return { leftToday: leftThisMonth, leftThisMonth };
    const today = Math.max(0, perDay - (await freeUse(this.#database, accountId, dayOf(at))));
    return { leftToday: Math.min(today, leftThisMonth), leftThisMonth };
  }

  /** Charged calls by day, account and payment, without repeats and refunded ones; of one account or of all. */
  usage(span: Span = {}, accountId?: string): Promise<UsageRow[]> {
    return usage(this.#database, span, accountId ?? null);
  }

  /** Answers in progress: reserved, or charged and not delivered. */
  openReservations(): Promise<number> {
    return transitions.countOpen(this.#database);
  }

  /** Credits granted, bought, adjusted and refunded, of all accounts since the beginning. */
  booked(): Promise<Booked[]> {
    // Reads an index of such entries only.
    return this.#database.all(
      `SELECT kind, CASE WHEN amount < 0 THEN 'out' ELSE 'in' END AS direction, sum(abs(amount)) AS amount
       FROM entry WHERE kind IN ('grant', 'purchase', 'adjust', 'refund')
       GROUP BY kind, direction ORDER BY kind, direction`,
    );
  }

  /** Credits that all accounts together have left. */
  async balances(): Promise<QuarterCredits> {
    const found = await this.#database.get<{ sum: QuarterCredits }>(
      'SELECT coalesce(sum(balance), 0) AS sum FROM account',
    );
    if (!found) throw new Error('A sum without a row.');
    return found.sum;
  }

  /** Every contradiction in the ledger, as a sentence; empty if there is none. Reads everything. */
  verify(): Promise<string[]> {
    return this.#database.snapshot((sql) => contradictions(sql, this.#billing.prices));
  }

  #transaction<T>(accountId: string, work: (transaction: LedgerTransaction) => Promise<T>): Promise<T> {
    return LedgerTransaction.run(this.#database, this.now, accountId, work);
  }

  #describeAnswer(): transitions.AnswerDescriptor {
    return { id: randomUUID(), node: this.#node, ttlMs: this.#billing.reservationSeconds * 1000 };
  }

  /** A ledger transaction that may begin an answer. If it is unknown whether it did, the answer is released later. */
  async #begin<T>(
    accountId: string,
    answer: string,
    work: (transaction: LedgerTransaction) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#transaction(accountId, work);
    } catch (error) {
      if (isUnavailable(error) && error.cause instanceof InDoubt)
        this.#retries.add(() => this.#release(accountId, answer, 'reservation outcome unknown'));
      throw error;
    }
  }

  #answer(state: AnswerState): ChargeHandle {
    const { accountId, answer } = state;
    return {
      isChargeValid: async () => {
        const { charge } = state;
        if (charge === undefined) return false;
        const query = async () => (await transitions.isChargeValid(this.#database, charge)) || undefined;
        return (await this.#validCharges.get(charge, query)) ?? false;
      },
      deliver: async () => {
        const { charge } = state;
        if (charge === undefined) return;
        await this.#retries.do(() =>
          this.#transaction(accountId, (transaction) => transitions.deliver(transaction, charge)),
        );
      },
      release: () => this.#retries.do(() => this.#release(accountId, answer)),
    };
  }

  async #release(accountId: string, answer: string, note?: string): Promise<void> {
    await this.#transaction(accountId, (transaction) => transitions.release(transaction, answer, note));
  }

  /**
   * Each in a ledger transaction of its own, so that no request waits for all; an answer may have ended since it was found.
   * A failure is reported and does not hold up other accounts.
   */
  async #endAll(
    open: readonly transitions.OpenAnswer[],
    end: (transaction: LedgerTransaction, id: string) => Promise<boolean>,
  ): Promise<number> {
    const failing = new Set<string>();
    let [count, unavailable] = [0, 0];
    for (const { id, accountId } of open) {
      if (failing.has(accountId)) continue;
      try {
        if (await this.#transaction(accountId, (transaction) => end(transaction, id))) count++;
      } catch (error) {
        this.#onError(error);
        failing.add(accountId);
        if (isUnavailable(error) && ++unavailable === maxUnavailable) break;
      }
    }
    return count;
  }
}
