/** What the books know of a result that was charged, and wait for. Ends do not reject. */
export interface ResultPayment {
  /** Whether the charge stands: it may be given back at any time, and then pays for no answer any more. */
  stands(): Promise<boolean>;
  /** An answer with the result went out: the charge is final. */
  deliver(): Promise<void>;
  /** No answer with it will go out from here. */
  release(): Promise<void>;
}

/** For a result to hold: nothing of the request that made it is in reach here, so nothing of that stays in memory. */
export const paymentOf = (payment: ResultPayment): ResultPayment => ({
  stands: () => payment.stands(),
  deliver: () => payment.deliver(),
  release: () => payment.release(),
});

/** A result that was charged. */
export interface Paid<T> {
  readonly value: T;
  readonly payment: ResultPayment;
}

/** Who of all that get a result is told of the charge: the first. Neither rejects. */
export interface ChargeReport {
  /** True for the first caller. */
  first(): Promise<boolean>;
  /** The first one did not get it after all: the next one is the first. */
  takeBack(): Promise<void>;
}

/** What became of one answer: it is out; its connection broke on the way; nothing of it was sent. */
export type Ending = 'delivered' | 'broken' | 'unsent';

/**
 * A result that was made and charged once, shared by all in this process who may answer with it. It is charged for good
 * when the first answer is out or broken off. When all have ended and nothing was sent, the charge is released and the
 * result is void: it must not be used for nothing.
 */
export class SharedResult<T> {
  readonly value: T;
  readonly chargeReport: ChargeReport;
  readonly #payment: ResultPayment;
  #handles = 0;
  #state: 'undelivered' | 'delivered' | 'void' = 'undelivered';
  #ended: Promise<void> = Promise.resolve();

  constructor({ value, payment }: Paid<T>, chargeReport: ChargeReport) {
    this.value = value;
    this.chargeReport = chargeReport;
    this.#payment = payment;
  }

  /** For a result that was kept for a while: whether it is still paid for. Rejects when the books cannot be asked. */
  isPaid(): Promise<boolean> {
    return this.#payment.stands();
  }

  /** For one who may answer with it; undefined when it is void. */
  handle(): ResultHandle<T> | undefined {
    if (this.#state === 'void') return undefined;
    this.#handles++;
    return new ResultHandle(this);
  }

  /** An answer with it was sent: the charge is final. */
  get isDelivered(): boolean {
    return this.#state === 'delivered';
  }

  /** For handles only: one fewer. */
  async end(ending: Ending): Promise<void> {
    this.#handles--;
    if (this.#state === 'undelivered') {
      if (ending !== 'unsent') {
        this.#state = 'delivered';
        this.#ended = this.#payment.deliver();
      } else if (this.#handles === 0) {
        this.#state = 'void';
        this.#ended = this.#payment.release();
      }
    }
    await this.#ended;
  }
}

/** The right to answer with a result, until `end`, which is to be called once. */
export class ResultHandle<T> {
  readonly #result: SharedResult<T>;
  #first = false;

  constructor(result: SharedResult<T>) {
    this.#result = result;
  }

  get value(): T {
    return this.#result.value;
  }

  /** What it is a handle to, to be kept. */
  get result(): SharedResult<T> {
    return this.#result;
  }

  /** Another handle. It exists: nothing is void that somebody has a handle to. */
  another(): ResultHandle<T> {
    const handle = this.#result.handle();
    if (!handle) throw new Error('A handle to a void result.');
    return handle;
  }

  /** Whether this one is told of the charge. Never rejects. */
  async isFirst(): Promise<boolean> {
    this.#first = await this.#result.chargeReport.first();
    return this.#first;
  }

  /** Whether the charge is final and somebody else reports it: how this one ends makes no difference. */
  get isFinal(): boolean {
    return !this.#first && this.#result.isDelivered;
  }

  async end(ending: Ending): Promise<void> {
    if (this.#first && ending !== 'delivered') await this.#result.chargeReport.takeBack();
    await this.#result.end(ending);
  }
}
