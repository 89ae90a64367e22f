import { once } from './retained.ts';

/** Bounds the concurrent calls of one account. */
export interface ConcurrencyLimit {
  /**
   * Returns a function to call when the call is over (idempotent, never rejects); undefined if the limit is
   * reached.
   */
  enter(account: string): Promise<(() => Promise<void>) | undefined>;
}

/** Concurrent calls, counted within this process. */
export class InMemoryConcurrencyLimit implements ConcurrencyLimit {
  readonly #limit: number;
  readonly #running = new Map<string, number>();

  /** 0: no limit. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  async enter(account: string): Promise<(() => Promise<void>) | undefined> {
    const running = this.#running.get(account) ?? 0;
    if (this.#limit > 0 && running >= this.#limit) return undefined;
    this.#running.set(account, running + 1);
    const leave = once(() => {
      const left = (this.#running.get(account) ?? 1) - 1;
      if (left === 0) this.#running.delete(account);
      else this.#running.set(account, left);
    });
    return async () => leave();
  }
}
