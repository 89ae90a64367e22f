/** Mutual exclusion for asynchronous work, first come, first served. */
export class Mutex {
  #locked = false;
  readonly #waiting: (() => void)[] = [];

  /** Resolves when the caller holds the lock, which it must release. */
  async acquire(): Promise<void> {
    if (this.#locked) await new Promise<void>((acquired) => this.#waiting.push(acquired));
    this.#locked = true;
  }

  /** Passes the lock directly to the next waiter, so that nobody gets in between. */
  release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#locked = false;
  }
}

/** Group commit: callers that arrive during a sync share the next one. */
export class GroupCommit {
  readonly #sync: () => Promise<void>;
  #last: Promise<void> = Promise.resolve();
  /** The next sync; not started yet. */
  #next: Promise<void> | undefined;

  /** `sync` resolves when everything written before its call is durable. */
  constructor(sync: () => Promise<void>) {
    this.#sync = sync;
  }

  /** Resolves when everything written until now is durable. Rejects as `sync` does. */
  done(): Promise<void> {
    if (this.#next !== undefined) return this.#next;
    const begin = () => {
      this.#next = undefined;
      return this.#sync();
    };
    this.#next = this.#last.then(begin, begin);
    this.#last = this.#next;
    return this.#next;
  }
}
