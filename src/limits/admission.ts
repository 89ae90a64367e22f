export interface AdmissionOptions {
  /** Pieces of work under way at a time: bounds the pictures that are decoded in memory. */
  readonly running: number;
  /** How many more may wait; 0 = nobody waits. */
  readonly waiting: number;
}

export type AdmissionOutcome =
  | {
      readonly outcome: 'admitted';
      /** Frees the place; any number of times. */
      readonly leave: () => void;
    }
  | { readonly outcome: 'full' /** Whole seconds, 1 to 60. */; readonly retryAfter: number };

/**
 * The gate before the memory and the processors: a bounded number works, a bounded number waits in the order
 * it came, the rest is refused at once.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #now: () => number;
  readonly #queue = new Set<() => void>();
  #running = 0;
  /** Moving average of how long one stays, for Retry-After. */
  #seconds = 1;

  /** `now` gives milliseconds. */
  constructor(options: AdmissionOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
  }

  get stats(): { readonly running: number; readonly waiting: number } {
    return { running: this.#running, waiting: this.#queue.size };
  }

  /** Rejects with the signal's reason when it is aborted while waiting. */
  async enter(signal: AbortSignal): Promise<AdmissionOutcome> {
    signal.throwIfAborted();
    if (this.#running < this.#options.running) {
      this.#running++;
    } else if (this.#queue.size < this.#options.waiting) {
      await this.#wait(signal);
    } else {
      const ahead = (this.#queue.size + this.#running) / this.#options.running;
      return { outcome: 'full', retryAfter: Math.min(60, Math.max(1, Math.ceil(ahead * this.#seconds))) };
    }
    return { outcome: 'admitted', leave: this.#place() };
  }

  /** Resolves with the place already counted for the one who waited. */
  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#queue.delete(enter);
        reject(signal.reason);
      };
      this.#queue.add(enter);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  #place(): () => void {
    const since = this.#now();
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      this.#seconds += (Math.max(0, this.#now() - since) / 1000 - this.#seconds) / 8;
      const next = this.#queue.values().next().value;
      if (next) {
        this.#queue.delete(next);
        next();
      } else {
        this.#running--;
      }
    };
  }
}
