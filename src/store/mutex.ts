/** Mutual exclusion for asynchronous work, first come, first served. */
export class Mutex {
  #busy = false;
  readonly #waiting: (() => void)[] = [];

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#busy) await new Promise<void>((turn) => this.#waiting.push(turn));
    this.#busy = true;
    try {
      return await work();
    } finally {
      // Ownership passes directly to the next waiter, so that nobody gets in between.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#busy = false;
    }
  }
}
