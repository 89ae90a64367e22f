/** Many wait for the disk at once: who comes while it is at work shares the next time with all others who do. */
export class GroupCommit {
  readonly #sync: () => Promise<void>;
  #last: Promise<void> = Promise.resolve();
  /** Has not begun yet. */
  #next: Promise<void> | undefined;

  /** `sync` resolves when all that was written before it was called lasts. */
  constructor(sync: () => Promise<void>) {
    this.#sync = sync;
  }

  /** Resolves when all that was written until now lasts. Rejects as `sync` does. */
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
