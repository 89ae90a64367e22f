import type { Accounts } from '../accounts/accounts.ts';
import { isUnavailable } from '../store/error.ts';
import type { Ledger } from './ledger.ts';

interface SweepOptions {
  readonly renewLease: () => Promise<void>;
  readonly ledger: Pick<Ledger, 'sweep' | 'recover'>;
  readonly accounts: Pick<Accounts, 'flush'>;
  /** Milliseconds between the starts of two sweeps. A sweep that takes longer is not overlapped by the next one. */
  readonly everyMs: number;
  /** Receives the error of a failed step, which the next sweep repeats. */
  readonly onError: (error: unknown) => void;
}

/**
 * Sweeps the stores of a server on timers that do not keep the process alive: renews its lease, releases what has expired and
 * what dead servers left, and writes when keys were used. The first sweep begins `everyMs` after the creation.
 */
export class Sweep {
  readonly #options: SweepOptions;
  readonly #timer: NodeJS.Timeout;
  #early: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  /** When the last sweep began. */
  #begun = performance.now();
  /** When the renewal in progress began. */
  #renewing: number | undefined;
  #reached = true;
  #stopped = false;

  constructor(options: SweepOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#begin(), options.everyMs).unref();
  }

  /**
   * Whether the database can be read and written: the last renewal of the lease, which is a write, was not refused, and the
   * one in progress, if any, has not taken `everyMs`.
   */
  get isReachable(): boolean {
    const renewing = this.#renewing;
    return this.#reached && (renewing === undefined || performance.now() - renewing < this.#options.everyMs);
  }

  /** Sweeps without waiting for the timer, for a caller that was refused; at most five times in `everyMs`. */
  soon(): void {
    if (this.#early !== undefined || this.#sweeping !== undefined || this.#stopped) return;
    const wait = Math.max(0, this.#begun + this.#options.everyMs / 5 - performance.now());
    this.#early = setTimeout(() => {
      this.#early = undefined;
      this.#begin();
    }, wait).unref();
  }

  /** Starts no more sweeps and resolves when the one in progress has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    clearTimeout(this.#early);
    await this.#sweeping;
  }

  #begin(): void {
    if (this.#sweeping !== undefined) return;
    this.#begun = performance.now();
    this.#sweeping = this.#sweep().finally(() => {
      this.#sweeping = undefined;
    });
  }

  /** Does the steps in order. While the database is down all wait for it; any other failure of one does not affect the others. */
  async #sweep(): Promise<void> {
    const { ledger, accounts, onError } = this.#options;
    const steps = [
      () => this.#renew(),
      () => ledger.sweep(),
      () => ledger.recover(),
      () => accounts.flush(),
    ] as const;
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        onError(error);
        if (isUnavailable(error)) {
          this.#reached = false;
          return;
        }
      }
    }
    this.#reached = true;
  }

  async #renew(): Promise<void> {
    this.#renewing = performance.now();
    try {
      await this.#options.renewLease();
    } finally {
      this.#renewing = undefined;
    }
  }
}
