/**
 * The ledger's handle to the charge that an answer in progress carries. It ends once, by `deliver` or `release`; later calls of
 * either change nothing. While the database is unreachable, both resolve and a later sweep does the work. Any other failure
 * goes to `onError` of the ledger: both resolve if that only logs, as in a server, and reject with what it throws, as by
 * default.
 */
export interface ChargeHandle {
  /** Whether its charge was made and not refunded since: then it pays for no further answer. Rejects with STORE_UNAVAILABLE. */
  isChargeValid(): Promise<boolean>;
  /** The answer was sent, completely or in part: its charge is final. */
  deliver(): Promise<void>;
  /** Nothing was sent: releases the reservation; the last answer that could carry a charge refunds it. */
  release(): Promise<void>;
}

export interface Charged<T> {
  readonly value: T;
  readonly chargeHandle: ChargeHandle;
}

/** Decides which of all answers with a result reports its charge: the first. Neither method rejects. */
export interface ChargeReport {
  /** True for the first caller, until it releases the claim. */
  claim(): Promise<boolean>;
  /** The answer that claimed it was not delivered: the next one may claim it. */
  release(): Promise<void>;
}

/** What became of one answer: it was sent, it was interrupted while it was sent, or nothing of it was sent. */
export type DeliveryOutcome = 'delivered' | 'broken' | 'unsent';

/**
 * A result that was made and charged once, shared by all callers in this process. The charge becomes
 * final when any byte of an answer was sent. If every handle ends `unsent`, the charge is released and the
 * result is void: it may no longer be used.
 */
export class SharedResult<T> {
  readonly value: T;
  readonly chargeReport: ChargeReport;
  readonly #chargeHandle: ChargeHandle;
  #handles = 0;
  #state: 'undelivered' | 'delivered' | 'void' = 'undelivered';
  #ended: Promise<void> = Promise.resolve();

  constructor({ value, chargeHandle }: Charged<T>, chargeReport: ChargeReport) {
    this.value = value;
    this.chargeReport = chargeReport;
    this.#chargeHandle = chargeHandle;
  }

  /** Whether the charge of a cached result is still valid. Rejects if the ledger cannot be read. */
  isChargeValid(): Promise<boolean> {
    return this.#chargeHandle.isChargeValid();
  }

  /** A handle for one answer; undefined if the result is void. */
  handle(): ResultHandle<T> | undefined {
    if (this.#state === 'void') return undefined;
    this.#handles++;
    return new ResultHandle(this);
  }

  /** An answer with it was sent: the charge is final. */
  get isDelivered(): boolean {
    return this.#state === 'delivered';
  }

  /** Called by handles only: ends one of them. */
  async end(outcome: DeliveryOutcome): Promise<void> {
    this.#handles--;
    if (this.#state === 'undelivered') {
      if (outcome !== 'unsent') {
        this.#state = 'delivered';
        this.#ended = this.#chargeHandle.deliver();
      } else if (this.#handles === 0) {
        this.#state = 'void';
        this.#ended = this.#chargeHandle.release();
      }
    }
    await this.#ended;
  }
}

/**
 * The right to answer with a result, until `end`, to be called once, when the outcome is known. If nothing was
 * delivered, the next caller becomes the first. A result of which nothing was ever sent is void, its charge released.
 */
export class ResultHandle<T> {
  readonly #result: SharedResult<T>;
  #reportsCharge = false;

  constructor(result: SharedResult<T>) {
    this.#result = result;
  }

  get value(): T {
    return this.#result.value;
  }

  get result(): SharedResult<T> {
    return this.#result;
  }

  /** Another handle; always succeeds, because a result with an open handle is never void. */
  duplicate(): ResultHandle<T> {
    const handle = this.#result.handle();
    if (!handle) throw new Error('A handle to a void result.');
    return handle;
  }

  /** Claims the report of the charge for this answer, unless another one has it. Never rejects. */
  async claimChargeReport(): Promise<void> {
    this.#reportsCharge = await this.#result.chargeReport.claim();
  }

  /** False for the first caller that gets this value: its answer reports the charge. All others are charged nothing. */
  get replayed(): boolean {
    return !this.#reportsCharge;
  }

  /** False if the charge is final and another answer reports it: the outcome of this one has no effect then. */
  get tracksDelivery(): boolean {
    return this.#reportsCharge || !this.#result.isDelivered;
  }

  async end(outcome: DeliveryOutcome): Promise<void> {
    if (this.#reportsCharge && outcome !== 'delivered') await this.#result.chargeReport.release();
    await this.#result.end(outcome);
  }
}
