import type { ChargedFor, Repeatable } from '../idempotency/chargedContent.ts';
import type { QuarterCredits, Tier } from './price.ts';

/** What a call is paid with. */
export type Payment = 'free' | 'preview' | 'full';

export interface ReserveRequest {
  readonly requestId: string;
  /** `auto`: a full result where that can be paid for, else a preview. */
  readonly size: Tier | 'auto';
  /** What a repeat of this work is recognised by: then its charge is not made again. */
  readonly repeat?: Repeatable | undefined;
}

/**
 * An answer under way. It ends once, by `deliver` or `release`; later calls of either change nothing. While the books
 * cannot be reached, both resolve and a later sweep does the work. Any other failure goes to `onError` of the ledger:
 * both resolve where that only logs, as in a server, and reject with what it throws, as it does by default.
 */
export interface Answer {
  /** Whether its charge stands: it was made, and not given back since. Rejects with STORE_UNAVAILABLE. */
  stands(): Promise<boolean>;
  /** The answer went out, completely or in part: its charge is final. */
  deliver(): Promise<void>;
  /**
   * Nothing of an answer went out. Gives back what is reserved. A charge is given back with the last answer that could
   * have carried it.
   */
  release(): Promise<void>;
}

export interface Settlement {
  /** What this answer costs: 0 where it carries the charge of another one. */
  readonly charged: QuarterCredits;
  /** Number of the charge that the answer carries, its own or the one it repeats. Undefined: there are no books. */
  readonly charge: number | undefined;
}

/** What a charge needs and what the account has. */
export interface Shortfall {
  readonly needed: QuarterCredits;
  readonly balance: QuarterCredits;
}

/** What was reserved for the work is gone, and the balance does not suffice to charge it anew. */
export class ShortOfCredits extends Error {
  override readonly name = 'ShortOfCredits';
  readonly shortfall: Shortfall;

  constructor(shortfall: Shortfall) {
    super('The reservation was released in the meantime, and the balance is no longer sufficient.');
    this.shortfall = shortfall;
  }
}

/** Credits or a free call set aside for one piece of work. */
export interface Reservation extends Answer {
  readonly id: number;
  /** The size the work is to be done at: what was asked for, or what `auto` came to. */
  readonly tier: Tier;
  readonly payment: Payment;
  /**
   * The work is done: charges it, unless the same content was charged meanwhile; then what is reserved goes back. What
   * was released meanwhile is charged anew, which rejects with ShortOfCredits where it cannot be paid. The charge is
   * given back unless `deliver` follows. After any other rejection whether it charged is unknown; `release` then undoes
   * it. Done once: a later call gives what the first one gave.
   */
  settle(): Promise<Settlement>;
}

export type ReserveOutcome =
  | { readonly outcome: 'reserved'; readonly reservation: Reservation }
  | ({ readonly outcome: 'insufficient' } & Shortfall);

/** What the use case needs of the books. Rejects only when the books themselves fail (STORE_UNAVAILABLE). */
export interface Reservations {
  reserve(accountId: string, request: ReserveRequest): Promise<ReserveOutcome>;
  /**
   * One more answer with a charge that another process made, by the charge's number. Undefined when no charge of that
   * number stands in these books that `isFor` takes for the right one: it was given back, its time is over, it was never
   * made, or it is of other books, for whoever else or for something else.
   */
  answerWith(charge: number, isFor: (paid: ChargedFor) => boolean): Promise<Answer | undefined>;
}

export interface Balance {
  readonly credits: QuarterCredits;
  /** Free previews left this month, whether or not today's are used up (docs/contract.md section 8). */
  readonly freeCalls: number;
}

export interface Balances {
  balance(accountId: string): Promise<Balance>;
}
