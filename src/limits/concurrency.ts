/** How many calls of one account may be under way at a time. */
export class ConcurrencyLimit {
  readonly #limit: number;
  readonly #running = new Map<string, number>();

  /** 0 = no limit. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What to call when the call is over, any number of times; undefined when there is no room. */
  enter(account: string): (() => void) | undefined {
    const running = this.#running.get(account) ?? 0;
    if (this.#limit > 0 && running >= this.#limit) return undefined;
    this.#running.set(account, running + 1);
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      const left = (this.#running.get(account) ?? 1) - 1;
      if (left === 0) this.#running.delete(account);
      else this.#running.set(account, left);
    };
  }
}
