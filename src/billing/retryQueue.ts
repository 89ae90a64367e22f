import { isUnavailable } from '../store/error.ts';

/**
 * Deliveries and releases of answers that have to be written once the database is reachable again. One that fails for
 * another reason will never succeed: it is reported and dropped.
 */
export class RetryQueue {
  readonly #ends: (() => Promise<void>)[] = [];
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Now, or by a later `run`. */
  async do(end: () => Promise<void>): Promise<void> {
    await this.#try(end);
  }

  add(end: () => Promise<void>): void {
    this.#ends.push(end);
  }

  /** Tries each once; stops at the first for which the database is unreachable, which moves to the end of the queue. */
  async run(): Promise<void> {
    for (let left = this.#ends.length; left > 0; left--) {
      const end = this.#ends.shift();
      if (!end || !(await this.#try(end))) return;
    }
  }

  /** False if the database is unreachable; then it waits in the queue. */
  async #try(end: () => Promise<void>): Promise<boolean> {
    try {
      await end();
      return true;
    } catch (error) {
      const waits = isUnavailable(error);
      if (waits) this.#ends.push(end);
      else this.#onError(error);
      return !waits;
    }
  }
}
