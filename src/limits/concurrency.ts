import { once } from './retained.ts';

/** Bounds the concurrent calls of one account. */
export interface ConcurrencyLimit {
  /** Returns what to call at the end (idempotent, never rejects); undefined if the limit is reached. */
  enter(account: string): Promise<(() => Promise<void>) | undefined>;
}

/** What is in progress for each account, and in all. */
export class RunningCount {
  readonly #running = new Map<string, number>();
  total = 0;

  of(account: string): number {
    return this.#running.get(account) ?? 0;
  }

  /** Counts one more until the returned function is called (idempotent). */
  enter(account: string): () => void {
    const add = (more: 1 | -1) => {
      this.total += more;
      const now = this.of(account) + more;
      if (now === 0) this.#running.delete(account);
      else this.#running.set(account, now);
    };
    add(1);
    return once(() => add(-1));
  }
}

/** Concurrent calls, counted within this process. */
export class InMemoryConcurrencyLimit implements ConcurrencyLimit {
  readonly #limit: number;
  readonly #running = new RunningCount();

  /** 0: no limit. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  async enter(account: string): Promise<(() => Promise<void>) | undefined> {
    if (this.#limit > 0 && this.#running.of(account) >= this.#limit) return undefined;
    const leave = this.#running.enter(account);
    return async () => leave();
  }
}
