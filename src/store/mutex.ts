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
