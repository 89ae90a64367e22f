import { StoreError } from '../store/error.ts';
import type { Database, Statement } from '../store/sqlite.ts';
import { type BillingOptions, type QuarterCredits, quarters, sizes, type Tier } from './price.ts';
import type {
  Balance,
  Balances,
  Payment,
  Reservation,
  Reservations,
  ReserveOutcome,
  ReserveRequest,
} from './reservation.ts';

export type EntryKind = 'grant' | 'purchase' | 'reserve' | 'settle' | 'release' | 'refund' | 'adjust';

export interface Entry {
  readonly id: number;
  readonly accountId: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly kind: EntryKind;
  /** What the balance moved by. */
  readonly amount: QuarterCredits;
  /** The balance after it. */
  readonly balance: QuarterCredits;
  readonly payment: Payment | null;
  readonly requestId: string | null;
  readonly reservationId: number | null;
  readonly reference: string | null;
  readonly note: string | null;
}

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

interface Open {
  readonly id: number;
  readonly accountId: string;
  readonly payment: Payment;
  readonly amount: QuarterCredits;
  readonly createdAt: number;
}

/** Half open: `from` counts, `to` does not. Unix milliseconds; without one there is no bound. */
export interface Span {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export interface UsageRow {
  /** UTC: '2026-11-21'. */
  readonly day: string;
  readonly accountId: string;
  readonly payment: Payment;
  readonly calls: number;
  readonly credits: QuarterCredits;
}

type NewEntry = Pick<Entry, 'accountId' | 'kind' | 'amount'> &
  Partial<Pick<Entry, 'payment' | 'requestId' | 'reservationId' | 'reference' | 'note'>>;

const entryColumns = `id, account_id AS accountId, at, kind, amount, balance, payment, request_id AS requestId,
  reservation_id AS reservationId, reference, note`;
const openColumns = 'id, account_id AS accountId, payment, amount, created_at AS createdAt';

const zero = quarters(0);
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);
const monthOf = (at: number) => dayOf(at).slice(0, 7);

/**
 * The books on SQLite. Every movement is one IMMEDIATE transaction: the entry, the balance and what is open
 * change together or not at all. The balance of an account is the sum of its entries' amounts; a reservation
 * takes its amount when it is made, `settle` moves nothing any more, `release` gives it back.
 */
export class Ledger implements Reservations, Balances {
  readonly #database: Database;
  readonly #options: BillingOptions;
  readonly #now: () => number;
  readonly #balance: Statement<[string], { balance: QuarterCredits }>;
  readonly #move: Statement<[{ id: string; amount: number }], { balance: QuarterCredits }>;
  readonly #insertEntry: Statement<[Omit<Entry, 'id'>]>;
  readonly #freeUsed: Statement<[accountId: string, period: string], { used: number }>;
  readonly #takeFree: Statement<[accountId: string, period: string]>;
  readonly #returnFree: Statement<[accountId: string, period: string]>;
  readonly #insertOpen: Statement<[Open & { expiresAt: number }]>;
  readonly #held: Statement<[id: number], Open>;
  readonly #close: Statement<[id: number]>;
  readonly #markCharged: Statement<[id: number]>;
  readonly #ended: Statement<[id: number], { kind: EntryKind; charge: QuarterCredits }>;

  /** `now` gives Unix milliseconds. */
  constructor(database: Database, options: BillingOptions, now: () => number) {
    this.#database = database;
    this.#options = options;
    this.#now = now;
    this.#balance = database.prepare('SELECT balance FROM account WHERE id = ?');
    this.#move = database.prepare(
      `UPDATE account SET balance = balance + @amount WHERE id = @id AND balance + @amount >= 0
       RETURNING balance`,
    );
    this.#insertEntry = database.prepare(
      `INSERT INTO entry (account_id, at, kind, amount, balance, payment, request_id, reservation_id, reference, note)
       VALUES (@accountId, @at, @kind, @amount, @balance, @payment, @requestId, @reservationId, @reference, @note)`,
    );
    this.#freeUsed = database.prepare('SELECT used FROM free_use WHERE account_id = ? AND period = ?');
    this.#takeFree = database.prepare(
      `INSERT INTO free_use (account_id, period, used) VALUES (?, ?, 1)
       ON CONFLICT (account_id, period) DO UPDATE SET used = used + 1`,
    );
    this.#returnFree = database.prepare(
      'UPDATE free_use SET used = used - 1 WHERE account_id = ? AND period = ?',
    );
    this.#insertOpen = database.prepare(
      `INSERT INTO reservation (id, account_id, payment, amount, state, created_at, expires_at)
       VALUES (@id, @accountId, @payment, @amount, 'held', @createdAt, @expiresAt)`,
    );
    this.#held = database.prepare(`SELECT ${openColumns} FROM reservation WHERE id = ? AND state = 'held'`);
    this.#close = database.prepare('DELETE FROM reservation WHERE id = ?');
    this.#markCharged = database.prepare("UPDATE reservation SET state = 'charged' WHERE id = ?");
    this.#ended = database.prepare(
      `SELECT ended.kind, -reserved.amount AS charge FROM entry AS ended
       JOIN entry AS reserved ON reserved.id = ended.reservation_id
       WHERE ended.reservation_id = ? AND ended.kind IN ('settle', 'release')`,
    );
  }

  /** Throws STORE_UNKNOWN_ACCOUNT. */
  async reserve(accountId: string, request: ReserveRequest): Promise<ReserveOutcome> {
    return this.#transaction(() => {
      const at = this.#now();
      const balance = this.#balanceOf(accountId);
      const tier = this.#tier(request, balance);
      const { payment, amount } = this.#payment(accountId, tier, at);
      if (amount > balance) return { outcome: 'insufficient', needed: amount, balance };

      const entry = this.#append({
        accountId,
        kind: 'reserve',
        amount: quarters(0 - amount),
        payment,
        requestId: request.requestId,
      });
      if (entry === undefined) throw new Error('A checked balance did not cover its reservation.');
      if (payment === 'free') this.#countFree(this.#takeFree, accountId, at);
      const expiresAt = at + this.#options.reservationSeconds * 1000;
      this.#insertOpen.run({ id: entry.id, accountId, payment, amount, createdAt: at, expiresAt });
      return { outcome: 'reserved', reservation: this.#reservation(entry.id, tier, payment, amount) };
    });
  }

  async balance(accountId: string): Promise<Balance> {
    const credits = this.#balanceOf(accountId);
    const used = this.#used(accountId, monthOf(this.#now()));
    return { credits, freeCalls: Math.max(0, this.#options.freePreviews.perMonth - used) };
  }

  /** Throws STORE_UNKNOWN_ACCOUNT, and STORE_REFERENCE_REUSED for a known reference with another amount. */
  post(accountId: string, request: PostRequest): PostOutcome {
    const { kind, amount, reference = null, note = null } = request;
    if (kind === 'adjust' ? amount === 0 : amount <= 0) throw new RangeError(`Not a ${kind}: ${amount}.`);
    return this.#transaction(() => {
      const balance = this.#balanceOf(accountId);
      const known = reference === null ? undefined : this.#byReference(accountId, kind, reference);
      if (known !== undefined) {
        if (known === amount) return { outcome: 'duplicate', balance };
        const message = `The ${kind} ${reference} of account ${accountId} was already made with another amount.`;
        throw new StoreError('STORE_REFERENCE_REUSED', message);
      }
      const entry = this.#append({ accountId, kind, amount, reference, note });
      return entry ? { outcome: 'posted', balance: entry.balance } : { outcome: 'insufficient', balance };
    });
  }

  /** Whether the outside event was already counted for the account. */
  hasReference(accountId: string, kind: PostRequest['kind'], reference: string): boolean {
    return this.#byReference(accountId, kind, reference) !== undefined;
  }

  /** Releases what ran out; a charged one that ran out counts as delivered. Gives how many ended. */
  sweep(): number {
    return this.#endAll('WHERE expires_at <= ?', [this.#now()], 'expired', 'delivered');
  }

  /**
   * Ends whatever a server that died left behind: work in progress is released, answers that were not out
   * are given back. Only for the one server of these books, before it takes requests. Gives how many ended.
   */
  recover(): number {
    return this.#endAll('', [], 'server stopped', 'refund');
  }

  /**
   * Gives a charged call back, a free one as well; false when it was given back before. Throws
   * STORE_UNKNOWN_RESERVATION, and STORE_NOT_CHARGED when it is open or was released.
   */
  refund(accountId: string, reservationId: number, note?: string): boolean {
    return this.#transaction(() => {
      const reserved = this.#database
        .prepare<[number, string], Open>(
          `SELECT id, account_id AS accountId, payment, -amount AS amount, at AS createdAt
           FROM entry WHERE id = ? AND account_id = ? AND kind = 'reserve'`,
        )
        .get(reservationId, accountId);
      if (!reserved) {
        const message = `Account ${accountId} has no reservation ${reservationId}.`;
        throw new StoreError('STORE_UNKNOWN_RESERVATION', message);
      }
      if (this.#ended.get(reservationId)?.kind !== 'settle') {
        const message = `Reservation ${reservationId} was not charged, so there is nothing to give back.`;
        throw new StoreError('STORE_NOT_CHARGED', message);
      }
      if (this.#refunded(reservationId)) return false;
      this.#giveBack(reserved, 'refund', note ?? null);
      return true;
    });
  }

  /** Newest last. `after` is the id of the last entry already known. */
  statement(
    accountId: string,
    page: Span & { after?: number | undefined; limit?: number | undefined } = {},
  ): Entry[] {
    const { from = 0, to = Number.MAX_SAFE_INTEGER, after = 0, limit = -1 } = page;
    return this.#database
      .prepare<[string, number, number, number, number], Entry>(
        `SELECT ${entryColumns} FROM entry
         WHERE account_id = ? AND id > ? AND at >= ? AND at < ? ORDER BY id LIMIT ?`,
      )
      .all(accountId, after, from, to, limit);
  }

  /** Newest first: a page for people. `before` is the id of the oldest entry already known. */
  history(
    accountId: string,
    page: Span & {
      kind?: EntryKind | undefined;
      before?: number | undefined;
      limit?: number | undefined;
    } = {},
  ): Entry[] {
    const { from = 0, to = Number.MAX_SAFE_INTEGER, before = Number.MAX_SAFE_INTEGER, limit = -1 } = page;
    return this.#database
      .prepare<[string, number, number, number, string | null, string | null, number], Entry>(
        `SELECT ${entryColumns} FROM entry
         WHERE account_id = ? AND id < ? AND at >= ? AND at < ? AND (? IS NULL OR kind = ?)
         ORDER BY id DESC LIMIT ?`,
      )
      .all(accountId, before, from, to, page.kind ?? null, page.kind ?? null, limit);
  }

  /** Free previews that are left; the day never has more than the month. */
  freePreviews(accountId: string): { readonly leftToday: number; readonly leftThisMonth: number } {
    const { perMonth, perDay } = this.#options.freePreviews;
    const now = this.#now();
    const leftThisMonth = Math.max(0, perMonth - this.#used(accountId, monthOf(now)));
    const today = perDay === 0 ? leftThisMonth : Math.max(0, perDay - this.#used(accountId, dayOf(now)));
    return { leftToday: Math.min(today, leftThisMonth), leftThisMonth };
  }

  /** Charged calls by day, account and payment, without those given back; of one account or of all. */
  usage(span: Span = {}, accountId?: string): UsageRow[] {
    const { from = 0, to = Number.MAX_SAFE_INTEGER } = span;
    return this.#database
      .prepare<{ from: number; to: number; accountId: string | null }, UsageRow>(
        `SELECT strftime('%Y-%m-%d', settled.at / 1000, 'unixepoch') AS day, reserved.account_id AS accountId,
           reserved.payment, count(*) AS calls, -sum(reserved.amount) AS credits
         FROM entry AS settled JOIN entry AS reserved ON reserved.id = settled.reservation_id
         WHERE settled.kind = 'settle' AND settled.at >= @from AND settled.at < @to
           AND (@accountId IS NULL OR settled.account_id = @accountId)
           AND NOT EXISTS (SELECT 1 FROM entry AS back
             WHERE back.reservation_id = reserved.id AND back.kind = 'refund')
         GROUP BY day, reserved.account_id, reserved.payment ORDER BY day, reserved.account_id, reserved.payment`,
      )
      .all({ from, to, accountId: accountId ?? null });
  }

  openReservations(): number {
    const count = this.#database.prepare<[], { n: number }>('SELECT count(*) AS n FROM reservation').get();
    return count?.n ?? 0;
  }

  /** Every way in which the books contradict themselves, as sentences; none when they are right. Reads all. */
  verify(): string[] {
    return this.#database.transaction(() => [
      ...this.#contradictions(
        `SELECT account.id, account.balance AS stored, coalesce(sum(entry.amount), 0) AS derived
         FROM account LEFT JOIN entry ON entry.account_id = account.id
         GROUP BY account.id HAVING stored <> derived`,
        'The balance of account',
      ),
      ...this.#contradictions(
        `SELECT id, balance AS stored,
           sum(amount) OVER (PARTITION BY account_id ORDER BY id) AS derived FROM entry`,
        'The balance after entry',
        'stored <> derived',
      ),
      ...this.#contradictions(
        `SELECT reserved.id, EXISTS (SELECT 1 FROM reservation WHERE id = reserved.id AND state = 'held') AS stored,
           NOT EXISTS (SELECT 1 FROM entry AS ended
             WHERE ended.reservation_id = reserved.id AND ended.kind IN ('settle', 'release')) AS derived
         FROM entry AS reserved WHERE reserved.kind = 'reserve'`,
        'Whether it is open, of reservation',
        'stored <> derived',
      ),
      ...this.#contradictions(
        `SELECT ended.id, ended.amount AS stored,
           CASE ended.kind WHEN 'settle' THEN 0 ELSE -reserved.amount END AS derived
         FROM entry AS ended JOIN entry AS reserved ON reserved.id = ended.reservation_id`,
        'The amount of entry',
        'stored <> derived',
      ),
      ...this.#contradictions(
        `SELECT free_use.account_id || ' in ' || period AS id, used AS stored,
           (SELECT count(*) FROM entry AS reserved
            WHERE reserved.account_id = free_use.account_id AND reserved.payment = 'free'
              AND strftime(CASE length(period) WHEN 7 THEN '%Y-%m' ELSE '%Y-%m-%d' END,
                           reserved.at / 1000, 'unixepoch') = period
              AND NOT EXISTS (SELECT 1 FROM entry AS ended
                WHERE ended.reservation_id = reserved.id AND ended.kind IN ('release', 'refund'))) AS derived
         FROM free_use`,
        'The free previews of account',
        'stored <> derived',
      ),
    ])();
  }

  #transaction<T>(work: () => T): T {
    return this.#database.transaction(work).immediate();
  }

  #balanceOf(accountId: string): QuarterCredits {
    const row = this.#balance.get(accountId);
    if (!row) throw new StoreError('STORE_UNKNOWN_ACCOUNT', `There is no account ${accountId}.`);
    return row.balance;
  }

  /** `auto` is a full result when it is larger than a preview and can be paid for. */
  #tier(request: ReserveRequest, balance: QuarterCredits): Tier {
    if (request.size !== 'auto') return request.size;
    return request.pixels > sizes.preview.maxPixels && balance >= this.#options.prices.full
      ? 'full'
      : 'preview';
  }

  #payment(accountId: string, tier: Tier, at: number): { payment: Payment; amount: QuarterCredits } {
    const amount = this.#options.prices[tier];
    const { perMonth, perDay } = this.#options.freePreviews;
    const free =
      tier === 'preview' &&
      amount > 0 &&
      this.#used(accountId, monthOf(at)) < perMonth &&
      (perDay === 0 || this.#used(accountId, dayOf(at)) < perDay);
    return free ? { payment: 'free', amount: zero } : { payment: tier, amount };
  }

  #used(accountId: string, period: string): number {
    return this.#freeUsed.get(accountId, period)?.used ?? 0;
  }

  #countFree(count: Statement<[accountId: string, period: string]>, accountId: string, at: number): void {
    count.run(accountId, monthOf(at));
    count.run(accountId, dayOf(at));
  }

  /** The one place where a balance moves. Undefined, and nothing done, when it would fall below 0. */
  #append(entry: NewEntry): { id: number; balance: QuarterCredits } | undefined {
    const moved = this.#move.get({ id: entry.accountId, amount: entry.amount });
    if (!moved) return undefined;
    const { lastInsertRowid } = this.#insertEntry.run({
      payment: null,
      requestId: null,
      reservationId: null,
      reference: null,
      note: null,
      ...entry,
      at: this.#now(),
      balance: moved.balance,
    });
    return { id: Number(lastInsertRowid), balance: moved.balance };
  }

  #byReference(accountId: string, kind: EntryKind, reference: string): QuarterCredits | undefined {
    return this.#database
      .prepare<[string, string, string], { amount: QuarterCredits }>(
        'SELECT amount FROM entry WHERE account_id = ? AND kind = ? AND reference = ?',
      )
      .get(accountId, kind, reference)?.amount;
  }

  #reservation(id: number, tier: Tier, payment: Payment, charge: QuarterCredits): Reservation {
    return {
      id,
      tier,
      payment,
      charge,
      settle: async (delivery = 'done') => this.#transaction(() => this.#settle(id, delivery)),
      delivered: async () => {
        this.#transaction(() => {
          if (!this.#held.get(id)) this.#close.run(id);
        });
      },
      release: async () => {
        this.#transaction(() => {
          const open = this.#held.get(id);
          if (open) this.#giveBack(open, 'release', null);
          else this.#endOf(id);
        });
      },
    };
  }

  #settle(id: number, delivery: 'done' | 'pending'): QuarterCredits {
    const open = this.#held.get(id);
    if (!open) {
      const end = this.#endOf(id);
      return end.kind === 'settle' ? end.charge : zero;
    }
    this.#append({ accountId: open.accountId, kind: 'settle', amount: zero, reservationId: id });
    if (delivery === 'pending') this.#markCharged.run(id);
    else this.#close.run(id);
    return open.amount;
  }

  /** `release` before it was charged, `refund` after. */
  #giveBack(open: Open, kind: 'release' | 'refund', note: string | null): void {
    this.#append({ accountId: open.accountId, kind, amount: open.amount, reservationId: open.id, note });
    // The period it was taken from, which may be over.
    if (open.payment === 'free') this.#countFree(this.#returnFree, open.accountId, open.createdAt);
    this.#close.run(open.id);
  }

  #endOf(id: number): { kind: EntryKind; charge: QuarterCredits } {
    const end = this.#ended.get(id);
    if (!end) throw new StoreError('STORE_UNKNOWN_RESERVATION', `There is no reservation ${id}.`);
    return end;
  }

  #refunded(id: number): boolean {
    const refund = this.#database.prepare<[number], unknown>(
      "SELECT 1 FROM entry WHERE reservation_id = ? AND kind = 'refund'",
    );
    return refund.get(id) !== undefined;
  }

  #endAll(where: string, parameters: number[], note: string, charged: 'delivered' | 'refund'): number {
    return this.#transaction(() => {
      const open = this.#database
        .prepare<number[], Open & { state: 'held' | 'charged' }>(
          `SELECT ${openColumns}, state FROM reservation ${where}`,
        )
        .all(...parameters);
      for (const one of open) {
        if (one.state === 'held') this.#giveBack(one, 'release', note);
        else if (charged === 'refund') this.#giveBack(one, 'refund', note);
        else this.#close.run(one.id);
      }
      return open.length;
    });
  }

  #contradictions(sql: string, what: string, where = 'true'): string[] {
    return this.#database
      .prepare<[], { id: string | number; stored: number; derived: number }>(
        `SELECT id, stored, derived FROM (${sql}) WHERE ${where}`,
      )
      .all()
      .map(({ id, stored, derived }) => `${what} ${id} is ${stored}, its entries give ${derived}.`);
  }
}
