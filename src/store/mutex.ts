/** One after the other, in the order in which they came. Who comes while nobody is at work begins at once. */
export class Mutex {
  #busy = false;
  readonly #waiting: (() => void)[] = [];

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#busy) await new Promise<void>((turn) => this.#waiting.push(turn));
    this.#busy = true;
    try {
      return await work();
    } finally {
      // Handed over, not freed: nobody comes in between.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#busy = false;
    }
  }
}
