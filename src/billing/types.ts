import type { ChargedFor, Repeatable } from '../idempotency/chargedContent.ts';
import type { ChargeHandle } from '../idempotency/sharedResult.ts';
import type { QuarterCredits, Tier } from './price.ts';

/** What a call is paid with. */
export type Payment = 'free' | 'preview' | 'full';

export interface ReserveRequest {
  readonly requestId: string;
  /** `auto`: a full result where that can be paid for, else a preview. */
  readonly size: Tier | 'auto';
  /** Identifies repeats of this work, which are not charged again. */
  readonly repeat?: Repeatable | undefined;
}

export interface Settlement {
  /** What this answer costs: 0 if it carries the charge of another one. */
  readonly charged: QuarterCredits;
  /** What the charge was paid with; undefined if the answer carries the charge of another one. */
  readonly payment: Payment | undefined;
  /** Number of the charge that the answer carries, its own or the one it repeats. Undefined without a ledger. */
  readonly charge: number | undefined;
}

/** Credits or a free preview reserved for one job. `Ledger` implements it; settlement.ts makes the transitions. */
export interface Reservation extends ChargeHandle {
  readonly id: number;
  /** The size to work at: the requested one, or what `auto` resolved to. */
  readonly tier: Tier;
  readonly payment: Payment;
  /**
   * Charges finished work, unless the same content was charged meanwhile; then the reservation is released. A reservation
   * that was released meanwhile is charged again, which rejects with `insufficient_credits` if it cannot be paid. The charge is
   * refunded unless `deliver` follows. After any other rejection it is unknown whether it charged; `release` undoes it.
   * Settles once: later calls resolve with the first outcome.
   * @param uncertainty of the result, for the account's statement: 0 to 1; negative or absent: not known
   */
  settle(uncertainty?: number): Promise<Settlement>;
}

/** What the use case needs of the ledger. Rejects with STORE_UNAVAILABLE if the database fails. */
export interface Reservations {
  /** The size that `reserve` would reserve, or its rejection; writes nothing, so that others may use the credits. */
  quote(accountId: string, request: Omit<ReserveRequest, 'requestId'>): Promise<Tier>;
  /** Rejects with `insufficient_credits`. */
  reserve(accountId: string, request: ReserveRequest): Promise<Reservation>;
  /**
   * Adds an answer to a charge of another process, by the charge's number. Undefined if no valid charge of that number is in
   * this ledger, or `isFor` rejects it: it was refunded, expired or never made, or is of another ledger, account or content.
   */
  addAnswer(charge: number, isFor: (paid: ChargedFor) => boolean): Promise<ChargeHandle | undefined>;
}

export interface Balance {
  readonly credits: QuarterCredits;
  /** Free previews left this month, even if today's are used up (docs/contract.md section 8). */
  readonly freeCalls: number;
}
