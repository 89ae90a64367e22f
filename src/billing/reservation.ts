import type { QuarterCredits, Tier } from './price.ts';

/** What a call is paid with. */
export type Payment = 'free' | 'preview' | 'full';

/**
 * By what a repeat of this work is known again (CONTRACT section 5.1), each a hash. Work that was charged for is not
 * charged for again when the kept result is lost: for `forMs` after the charge.
 */
export interface RepeatNames {
  /** Picture and settings. */
  readonly content: string;
  /** The Idempotency-Key. */
  readonly key?: string | undefined;
  /** Milliseconds. */
  readonly forMs: number;
}

/** `pixels`: what the result would have at `full`; `auto` is decided with it and the balance together. */
export type ReserveRequest = {
  readonly requestId: string;
  readonly repeat?: RepeatNames | undefined;
} & ({ readonly size: Tier } | { readonly size: 'auto'; readonly pixels: number });

/**
 * Credits or a free call set aside for one piece of work. It ends once, by `settle` or `release`; later calls
 * of either change nothing.
 */
export interface Reservation {
  readonly id: number;
  /** The size the work is to be done at: what was asked for, or what `auto` came to. */
  readonly tier: Tier;
  readonly payment: Payment;
  /** What `settle` will charge; 0 for a repeat. */
  readonly charge: QuarterCredits;
  /**
   * The work is done: charges it. With 'pending' the charge is given back should the server die before
   * `delivered` is called. Gives what was charged: 0 when the reservation was released or ran out before.
   */
  settle(delivery?: 'done' | 'pending'): Promise<QuarterCredits>;
  /** The answer of a pending settlement is out, or its client went away. */
  delivered(): Promise<void>;
  /**
   * The work came to nothing: gives everything back, the free call included. After a `settle` that failed it gives
   * back what that may have charged.
   */
  release(): Promise<void>;
}

export type ReserveOutcome =
  | { readonly outcome: 'reserved'; readonly reservation: Reservation }
  | {
      readonly outcome: 'insufficient';
      readonly needed: QuarterCredits;
      readonly balance: QuarterCredits;
    };

/** What the use case needs of the books. Rejects only when the books themselves fail (STORE_UNAVAILABLE). */
export interface Reservations {
  reserve(accountId: string, request: ReserveRequest): Promise<ReserveOutcome>;
  /**
   * `Reservation.delivered` by its number, for a settlement of another process. False when its charge does not
   * stand: it was given back, or never made.
   */
  delivered(reservationId: number): Promise<boolean>;
}

export interface Balance {
  readonly credits: QuarterCredits;
  /** Free previews left this month, whether or not today's are used up (CONTRACT section 8). */
  readonly freeCalls: number;
}

export interface Balances {
  balance(accountId: string): Promise<Balance>;
}
