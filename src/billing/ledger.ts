import type { Database, Sql } from '../store/database.ts';
import { InDoubt, isUnavailable, StoreError } from '../store/error.ts';
import { type Booked, balances, booked } from './booked.ts';
import {
  dayOf,
  type Entry,
  type EntryKind,
  type HistoryPage,
  history,
  type Span,
  type StatementPage,
  statement,
  type UsageRow,
  usage,
} from './entries.ts';
import { type BillingOptions, type QuarterCredits, quarters, sizes, type Tier } from './price.ts';
import { type Charged, repeats } from './repeats.ts';
import type {
  Balance,
  Balances,
  Payment,
  RepeatNames,
  Reservation,
  Reservations,
  ReserveOutcome,
  ReserveRequest,
} from './reservation.ts';
import { contradictions } from './verify.ts';

export interface PostRequest {
  readonly kind: 'grant' | 'purchase' | 'adjust';
  /** More than 0; `adjust` may be negative, but takes no balance below 0. */
  readonly amount: QuarterCredits;
  /** Names the outside event. The same kind and reference count once for an account. */
  readonly reference?: string;
  readonly note?: string;
}

export type PostOutcome =
  | { readonly outcome: 'posted' | 'duplicate'; readonly balance: QuarterCredits }
  | { readonly outcome: 'insufficient'; readonly balance: QuarterCredits };

/** A charge, as it stands in its reserve entry. */
interface Charge {
  readonly id: number;
  readonly payment: Payment;
  readonly amount: QuarterCredits;
  readonly createdAt: number;
}

interface Open extends Charge {
  readonly state: 'held' | 'charged';
  /** The reserve entry of the charge that is given back with it. */
  readonly carries: number | null;
}

/** A reservation as whoever made it knows it. */
interface Made {
  readonly id: number;
  readonly accountId: string;
  readonly names: RepeatNames | undefined;
  /** The charge it repeats. */
  readonly repeated: Charged | undefined;
}

type NewEntry = Pick<Entry, 'kind' | 'amount'> &
  Partial<Pick<Entry, 'payment' | 'requestId' | 'reservationId' | 'reference' | 'note'>>;

const openColumns = 'id, payment, amount, created_at AS "createdAt", state, carries';
const chargeColumns = 'id, payment, -amount AS amount, at AS "createdAt"';

const zero = quarters(0);
const monthOf = (at: number) => dayOf(at).slice(0, 7);

/**
 * The books. Every movement is one transaction that holds the row of its account: the entry, the balance and what is
 * open change together or not at all, on whatever node. The balance of an account is the sum of its entries' amounts; a
 * reservation takes its amount when it is made, `settle` moves nothing any more, `release` gives it back.
 */
export class Ledger implements Reservations, Balances {
  readonly #database: Database;
  readonly #options: BillingOptions;
  readonly #now: () => number;
  readonly #node: string | null;
  /** Ends of reservations that the database could not take yet. */
  readonly #later: (() => Promise<void>)[] = [];

  /** `now` gives Unix milliseconds. `node` names the server that makes the reservations. */
  constructor(database: Database, options: BillingOptions, now: () => number, node: string | null = null) {
    this.#database = database;
    this.#options = options;
    this.#now = now;
    this.#node = node;
  }

  /** Rejects with STORE_UNKNOWN_ACCOUNT. */
  async reserve(accountId: string, request: ReserveRequest): Promise<ReserveOutcome> {
    try {
      return await this.#reserve(accountId, request);
    } catch (error) {
      // Nobody will work on what may have been set aside.
      if (isUnavailable(error) && error.cause instanceof InDoubt)
        this.#later.push(() => this.#unreserve(accountId, request.requestId));
      throw error;
    }
  }

  #reserve(accountId: string, request: ReserveRequest): Promise<ReserveOutcome> {
    return this.#movement(accountId, async (sql, balance) => {
      const at = this.#now();
      const { requestId, repeat: names } = request;
      const known = names && (await repeats.find(sql, accountId, names, at));
      const repeated = known && this.#sameTier(request, known);
      const tier = repeated?.tier ?? this.#tier(request, balance);
      const { payment, amount } = repeated
        ? { payment: tier, amount: zero }
        : await this.#payment(sql, accountId, tier, at);
      if (amount > balance) return { outcome: 'insufficient', needed: amount, balance };

      const { id } = await this.#append(sql, accountId, {
        kind: 'reserve',
        amount: quarters(0 - amount),
        payment,
        requestId,
        ...(repeated && { reservationId: repeated.id, note: 'repeat' }),
      });
      if (payment === 'free') await this.#countFree(sql, accountId, at, 1);
      const carries = repeated && (await this.#takeOver(sql, repeated.id)) ? repeated.id : null;
      await sql.run(
        `INSERT INTO reservation
           (id, account_id, payment, amount, state, created_at, expires_at, node_id, carries)
         VALUES (@id, @accountId, @payment, @amount, 'held', @at, @expiresAt, @node, @carries)`,
        {
          id,
          accountId,
          payment,
          amount,
          at,
          expiresAt: at + this.#options.reservationSeconds * 1000,
          node: this.#node,
          carries,
        },
      );
      const reservation = this.#reservation({ id, accountId, names, repeated }, tier, payment, amount);
      return { outcome: 'reserved', reservation };
    });
  }

  async delivered(id: number): Promise<boolean> {
    const reserved = await this.#database.get<{ accountId: string; repeated: number | null }>(
      `SELECT account_id AS "accountId", reservation_id AS repeated FROM entry
       WHERE id = @id AND kind = 'reserve'`,
      { id },
    );
    if (!reserved) return false;
    const { accountId, repeated } = reserved;
    const charge = repeated ?? id;
    return this.#movement(accountId, async (sql) => {
      if ((await ended(sql, id))?.kind !== 'settle') return false;
      const back = await sql.get(
        "SELECT 1 AS refunded FROM entry WHERE reservation_id IN (@id, @charge) AND kind = 'refund'",
        { id, charge },
      );
      if (back) return false;
      await answered(sql, id, charge);
      return true;
    });
  }

  async balance(accountId: string): Promise<Balance> {
    const month = monthOf(this.#now());
    const found = await this.#database.get<{ credits: QuarterCredits; used: number }>(
      `SELECT balance AS credits, coalesce((SELECT sum(used) FROM free_use
         WHERE ${withFormer} AND period = @month), 0) AS used
       FROM account WHERE id = @accountId`,
      { accountId, month },
    );
    if (!found) throw unknownAccount(accountId);
    const { credits, used } = found;
    return { credits, freeCalls: Math.max(0, this.#options.freePreviews.perMonth - used) };
  }

  /** Rejects with STORE_UNKNOWN_ACCOUNT, and STORE_REFERENCE_REUSED for a known reference with another amount. */
  async post(accountId: string, request: PostRequest): Promise<PostOutcome> {
    const { kind, amount, reference = null, note = null } = request;
    if (kind === 'adjust' ? amount === 0 : amount <= 0) throw new RangeError(`Not a ${kind}: ${amount}.`);
    return this.#movement(accountId, async (sql, balance) => {
      const known = reference === null ? undefined : await byReference(sql, accountId, kind, reference);
      if (known !== undefined) {
        if (known === amount) return { outcome: 'duplicate', balance };
        const message = `The ${kind} ${reference} of account ${accountId} was already made with another amount.`;
        throw new StoreError('STORE_REFERENCE_REUSED', message);
      }
      if (balance + amount < 0) return { outcome: 'insufficient', balance };
      const entry = await this.#append(sql, accountId, { kind, amount, reference, note });
      return { outcome: 'posted', balance: entry.balance };
    });
  }

  /** Whether the outside event was already counted for the account. */
  async hasReference(accountId: string, kind: PostRequest['kind'], reference: string): Promise<boolean> {
    return (await byReference(this.#database, accountId, kind, reference)) !== undefined;
  }

  /** `hasReference`, for the account or one that its owner deleted before: what is given to people is given once. */
  async wasGiven(accountId: string, reference: string): Promise<boolean> {
    const found = await this.#database.get(
      `SELECT 1 AS given FROM entry WHERE ${withFormer} AND kind = 'grant' AND reference = @reference`,
      { accountId, reference },
    );
    return found !== undefined;
  }

  /**
   * Ends what could not be ended before, and what ran out: work under way is released, a charged one counts as
   * delivered. Gives how many ran out.
   */
  async sweep(): Promise<number> {
    for (let end = this.#later[0]; end; end = this.#later[0]) {
      await end();
      // Another sweep may have been quicker; what ended once does not end again.
      if (this.#later[0] === end) this.#later.shift();
    }
    const now = this.#now();
    await repeats.forget(this.#database, now);
    return this.#endAll('expires_at <= @now', { now }, 'expired', 'delivered');
  }

  /**
   * Ends whatever servers left behind that are not at work any more: work in progress is released, answers that were
   * not out are given back. Gives how many ended.
   */
  recover(): Promise<number> {
    const gone = 'NOT EXISTS (SELECT 1 FROM node WHERE node.id = reservation.node_id)';
    return this.#endAll(gone, {}, 'server stopped', 'refund');
  }

  /**
   * Gives a charged call back, a free one as well; false when it was given back before. Rejects with
   * STORE_UNKNOWN_RESERVATION, and STORE_NOT_CHARGED when it is open or was released.
   */
  refund(accountId: string, reservationId: number, note?: string): Promise<boolean> {
    return this.#movement(accountId, async (sql) => {
      const reserved = await sql.get<Charge>(
        `SELECT ${chargeColumns} FROM entry
         WHERE id = @reservationId AND account_id = @accountId AND kind = 'reserve'`,
        { reservationId, accountId },
      );
      if (!reserved) {
        const message = `Account ${accountId} has no reservation ${reservationId}.`;
        throw new StoreError('STORE_UNKNOWN_RESERVATION', message);
      }
      if ((await ended(sql, reservationId))?.kind !== 'settle') {
        const message = `Reservation ${reservationId} was not charged, so there is nothing to give back.`;
        throw new StoreError('STORE_NOT_CHARGED', message);
      }
      return this.#refund(sql, accountId, reserved, note ?? null);
    });
  }

  /** Newest last. */
  statement(accountId: string, page: StatementPage = {}): Promise<Entry[]> {
    return statement(this.#database, accountId, page);
  }

  /** Newest first: a page for people. */
  history(accountId: string, page: HistoryPage = {}): Promise<Entry[]> {
    return history(this.#database, accountId, page);
  }

  /** Free previews that are left; the day never has more than the month. */
  async freePreviews(
    accountId: string,
  ): Promise<{ readonly leftToday: number; readonly leftThisMonth: number }> {
    const { perMonth, perDay } = this.#options.freePreviews;
    const now = this.#now();
    const leftThisMonth = Math.max(0, perMonth - (await used(this.#database, accountId, monthOf(now))));
    if (perDay === 0) return { leftToday: leftThisMonth, leftThisMonth };
    const today = Math.max(0, perDay - (await used(this.#database, accountId, dayOf(now))));
    return { leftToday: Math.min(today, leftThisMonth), leftThisMonth };
  }

  /** Charged calls by day, account and payment, without repeats and those given back; of one account or of all. */
  usage(span: Span = {}, accountId?: string): Promise<UsageRow[]> {
    return usage(this.#database, span, accountId ?? null);
  }

  async openReservations(): Promise<number> {
    const found = await this.#database.get<{ open: number }>('SELECT count(*) AS open FROM reservation');
    return found?.open ?? 0;
  }

  /** Credits granted, bought, adjusted and given back, of all accounts since the beginning. */
  booked(): Promise<Booked[]> {
    return booked(this.#database);
  }

  /** Credits that all accounts together have left. */
  balances(): Promise<QuarterCredits> {
    return balances(this.#database);
  }

  /** Every way in which the books contradict themselves, as sentences; none when they are right. Reads all. */
  verify(): Promise<string[]> {
    return this.#database.snapshot(contradictions);
  }

  /** A transaction that no other movement of this account overlaps. */
  #movement<T>(accountId: string, work: (sql: Sql, balance: QuarterCredits) => Promise<T>): Promise<T> {
    return this.#database.transaction(async (sql) => {
      const account = await sql.get<{ balance: QuarterCredits }>(
        `SELECT balance FROM account WHERE id = @accountId${sql.dialect.forUpdate}`,
        { accountId },
      );
      if (!account) throw unknownAccount(accountId);
      return work(sql, account.balance);
    });
  }

  /** `auto` is a full result when it is larger than a preview and can be paid for. */
  #tier(request: ReserveRequest, balance: QuarterCredits): Tier {
    if (request.size !== 'auto') return request.size;
    return request.pixels > sizes.preview.maxPixels && balance >= this.#options.prices.full
      ? 'full'
      : 'preview';
  }

  /** What was paid for covers what is asked for: the same or less, never more for the same key. */
  #sameTier(request: ReserveRequest, charged: Charged): Charged | undefined {
    if (request.size === 'auto' || request.size === charged.tier) return charged;
    return request.size === 'preview' ? { ...charged, tier: 'preview' } : undefined;
  }

  async #payment(
    sql: Sql,
    accountId: string,
    tier: Tier,
    at: number,
  ): Promise<{ payment: Payment; amount: QuarterCredits }> {
    const amount = this.#options.prices[tier];
    const { perMonth, perDay } = this.#options.freePreviews;
    const free =
      tier === 'preview' &&
      amount > 0 &&
      perMonth > 0 &&
      (await used(sql, accountId, monthOf(at))) < perMonth &&
      (perDay === 0 || (await used(sql, accountId, dayOf(at))) < perDay);
    return free ? { payment: 'free', amount: zero } : { payment: tier, amount };
  }

  /** One free preview more (1) or fewer (-1) in the month and on the day of `at`. */
  async #countFree(sql: Sql, accountId: string, at: number, change: 1 | -1): Promise<void> {
    for (const period of [monthOf(at), dayOf(at)]) {
      await sql.run(
        change === 1
          ? `INSERT INTO free_use (account_id, period, used) VALUES (@accountId, @period, 1)
             ON CONFLICT (account_id, period) DO UPDATE SET used = free_use.used + 1`
          : 'UPDATE free_use SET used = used - 1 WHERE account_id = @accountId AND period = @period',
        { accountId, period },
      );
    }
  }

  /** The one place where a balance moves. The caller holds the account, and knows that the balance suffices. */
  async #append(
    sql: Sql,
    accountId: string,
    entry: NewEntry,
  ): Promise<{ id: number; balance: QuarterCredits }> {
    const moved = await sql.get<{ balance: QuarterCredits }>(
      'UPDATE account SET balance = balance + @amount WHERE id = @accountId RETURNING balance',
      { accountId, amount: entry.amount },
    );
    if (!moved) throw unknownAccount(accountId);
    const { balance } = moved;
    const inserted = await sql.get<{ id: number }>(
      `INSERT INTO entry
         (account_id, at, kind, amount, balance, payment, request_id, reservation_id, reference, note)
       VALUES
         (@accountId, @at, @kind, @amount, @balance, @payment, @requestId, @reservationId, @reference, @note)
       RETURNING id`,
      {
        payment: null,
        requestId: null,
        reservationId: null,
        reference: null,
        note: null,
        ...entry,
        accountId,
        at: this.#now(),
        balance,
      },
    );
    if (!inserted) throw new Error('An entry was written without a number.');
    return { id: inserted.id, balance };
  }

  #reservation(made: Made, tier: Tier, payment: Payment, charge: QuarterCredits): Reservation {
    let doubtful = false;
    return {
      id: made.id,
      tier,
      payment,
      charge,
      settle: async (delivery = 'done') => {
        try {
          return await this.#settle(made, delivery);
        } catch (error) {
          doubtful = true;
          throw error;
        }
      },
      delivered: () => this.#sooner(() => this.#delivered(made)),
      release: () => this.#sooner(() => this.#release(made, doubtful)),
    };
  }

  #settle({ id, accountId, names, repeated }: Made, delivery: 'done' | 'pending'): Promise<QuarterCredits> {
    return this.#movement(accountId, async (sql) => {
      const open = await openOf(sql, id);
      if (open?.state !== 'held') {
        const end = await endOf(sql, id);
        return end.kind === 'settle' ? end.charge : zero;
      }
      await this.#append(sql, accountId, { kind: 'settle', amount: zero, reservationId: id });
      if (names && repeated) await repeats.rename(sql, accountId, names, repeated);
      else if (names) await repeats.remember(sql, accountId, names, { id, at: this.#now() });
      if (delivery === 'pending')
        await sql.run("UPDATE reservation SET state = 'charged' WHERE id = @id", { id });
      else await close(sql, id);
      return open.amount;
    });
  }

  #delivered({ id, repeated }: Made): Promise<void> {
    return this.#database.transaction((sql) => answered(sql, id, repeated?.id ?? id));
  }

  /** `doubtful`: whether it was charged is not known, but no answer was made of it. */
  #release({ id, accountId }: Made, doubtful: boolean): Promise<void> {
    return this.#movement(accountId, async (sql) => {
      const open = await openOf(sql, id);
      if (open?.state === 'held') return this.#giveBack(sql, accountId, open, null);
      const end = await endOf(sql, id);
      if (doubtful && open) return this.#giveBack(sql, accountId, open, 'settled in vain');
      if (doubtful && end.kind === 'settle') await this.#refundOf(sql, accountId, id, 'settled in vain');
    });
  }

  /** Ends what this request has reserved, if anything. */
  #unreserve(accountId: string, requestId: string): Promise<void> {
    return this.#movement(accountId, async (sql) => {
      const found = await sql.get<{ id: number }>(
        `SELECT reservation.id FROM reservation JOIN entry ON entry.id = reservation.id
         WHERE reservation.account_id = @accountId AND reservation.state = 'held'
           AND entry.request_id = @requestId`,
        { accountId, requestId },
      );
      const open = found && (await openOf(sql, found.id));
      if (open) await this.#giveBack(sql, accountId, open, 'reserved in vain');
    });
  }

  /** Ends an open one with nothing charged: a release before it was charged, a refund after. */
  async #giveBack(sql: Sql, accountId: string, open: Open, note: string | null): Promise<void> {
    const { id, carries } = open;
    if (open.state === 'charged') {
      await this.#refund(sql, accountId, open, note);
    } else {
      await this.#append(sql, accountId, { kind: 'release', amount: open.amount, reservationId: id, note });
      if (open.payment === 'free') await this.#countFree(sql, accountId, open.createdAt, -1);
    }
    await close(sql, id);
    if (carries !== null) await this.#refundOf(sql, accountId, carries, note ?? 'repeated in vain');
  }

  async #refundOf(sql: Sql, accountId: string, id: number, note: string | null): Promise<void> {
    const charge = await sql.get<Charge>(
      `SELECT ${chargeColumns} FROM entry WHERE id = @id AND kind = 'reserve'`,
      { id },
    );
    if (charge) await this.#refund(sql, accountId, charge, note);
  }

  /** False when it was given back before. A free call returns to the period it was taken from, which may be over. */
  async #refund(sql: Sql, accountId: string, charge: Charge, note: string | null): Promise<boolean> {
    const { id, amount, payment, createdAt } = charge;
    const refunded = await sql.get(
      "SELECT 1 AS refunded FROM entry WHERE reservation_id = @id AND kind = 'refund'",
      { id },
    );
    if (refunded) return false;
    await this.#append(sql, accountId, { kind: 'refund', amount, reservationId: id, note });
    if (payment === 'free') await this.#countFree(sql, accountId, createdAt, -1);
    return true;
  }

  /** Whether a charge whose answer is not out yet goes over from whoever has it, and may not be able to send it. */
  async #takeOver(sql: Sql, charge: number): Promise<boolean> {
    const from =
      (await sql.run("DELETE FROM reservation WHERE id = @charge AND state = 'charged'", { charge })) +
      (await sql.run('UPDATE reservation SET carries = NULL WHERE carries = @charge', { charge }));
    return from > 0;
  }

  /** Each in a movement of its own, so that nobody waits for all. */
  async #endAll(
    where: string,
    values: { readonly now?: number },
    note: string,
    charged: 'delivered' | 'refund',
  ): Promise<number> {
    const found = await this.#database.all<{ id: number; accountId: string }>(
      `SELECT id, account_id AS "accountId" FROM reservation WHERE ${where} ORDER BY id`,
      { ...values },
    );
    let count = 0;
    for (const { id, accountId } of found) {
      const done = await this.#movement(accountId, async (sql) => {
        // It may have ended, or gone to another node, since it was found.
        const open = await sql.get<Open>(
          `SELECT ${openColumns} FROM reservation WHERE id = @id AND ${where}`,
          { ...values, id },
        );
        if (!open) return false;
        if (open.state === 'charged' && charged === 'delivered') await close(sql, id);
        else await this.#giveBack(sql, accountId, open, note);
        return true;
      });
      if (done) count++;
    }
    return count;
  }

  /** Now, or with the next sweep where the database cannot be reached: what is done must end in any case. */
  async #sooner(end: () => Promise<void>): Promise<void> {
    try {
      await end();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      this.#later.push(end);
    }
  }
}

const unknownAccount = (id: string) => new StoreError('STORE_UNKNOWN_ACCOUNT', `There is no account ${id}.`);

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

/** Rows of the account, and of those that its owner deleted before it. */
const withFormer =
  'account_id IN (SELECT @accountId UNION ALL SELECT former_id FROM former_account WHERE former_account.account_id = @accountId)';

/** Free previews that the account's owner used in a UTC month ('2026-11') or on a UTC day ('2026-11-21'). */
async function used(sql: Sql, accountId: string, period: string): Promise<number> {
  const found = await sql.get<{ used: number }>(
    `SELECT coalesce(sum(used), 0) AS used FROM free_use WHERE ${withFormer} AND period = @period`,
    { accountId, period },
  );
  return found?.used ?? 0;
}

const openOf = (sql: Sql, id: number) =>
  sql.get<Open>(`SELECT ${openColumns} FROM reservation WHERE id = @id`, { id });

const close = (sql: Sql, id: number) => sql.run('DELETE FROM reservation WHERE id = @id', { id });

/** The answer of a charged reservation is out, whoever else is at work on it. */
async function answered(sql: Sql, id: number, charge: number): Promise<void> {
  const closed = await sql.run("DELETE FROM reservation WHERE id = @id AND state = 'charged'", { id });
  if (closed === 1)
    await sql.run('UPDATE reservation SET carries = NULL WHERE carries = @charge', { charge });
}

const ended = (sql: Sql, id: number) =>
  sql.get<{ kind: EntryKind; charge: QuarterCredits }>(
    `SELECT ended.kind, -reserved.amount AS charge FROM entry AS ended
     JOIN entry AS reserved ON reserved.id = ended.reservation_id
     WHERE ended.reservation_id = @id AND ended.kind IN ('settle', 'release')`,
    { id },
  );

async function endOf(sql: Sql, id: number): Promise<{ kind: EntryKind; charge: QuarterCredits }> {
  const end = await ended(sql, id);
  if (!end) throw new StoreError('STORE_UNKNOWN_RESERVATION', `There is no reservation ${id}.`);
  return end;
}
