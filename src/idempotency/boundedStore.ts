interface Item<T> {
  readonly entry: T;
  readonly bytes: number;
  /** When it expires, on the store's clock. */
  readonly expiresAt: number;
}

/** Bytes of an item beside its content: key, objects, map entry. */
const overheadBytes = 512;

/**
 * An in-memory store, also for keyv without a time to live of its own, which would be one of the wall clock; bounded in bytes and
 * in time. The oldest entry is evicted first, and every entry is removed
 * when it expires, read or not. Entries are held by reference and must not be changed.
 */
export class BoundedStore<T> {
  /** Oldest first: a Map keeps the order of insertion. */
  readonly #items = new Map<string, Item<T>>();
  readonly #maxBytes: number;
  readonly #bytesOf: (entry: T) => number;
  readonly #ttlMs: number;
  readonly #now: () => number;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `ttlMs` more than 0. `now`: milliseconds of a clock that nobody sets; otherwise entries would stay for as long as it is
   * set back, and be lost when it is set forward.
   */
  constructor(
    maxBytes: number,
    bytesOf: (entry: T) => number,
    ttlMs: number,
    now: () => number = () => performance.now(),
  ) {
    this.#maxBytes = maxBytes;
    this.#bytesOf = bytesOf;
    this.#ttlMs = ttlMs;
    this.#now = now;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#items.size;
  }

  /** Nothing that has expired, whether or not it was removed. */
  get(key: string): T | undefined {
    const item = this.#items.get(key);
    return item && item.expiresAt > this.#now() ? item.entry : undefined;
  }

  has(key: string): boolean {
    return this.#items.has(key);
  }

  /** An entry larger than the whole store is not kept. */
  set(key: string, entry: T): void {
    this.delete(key);
    const bytes = this.#bytesOf(entry) + overheadBytes;
    if (bytes > this.#maxBytes) return;
    this.#items.set(key, { entry, bytes, expiresAt: this.#now() + this.#ttlMs });
    this.#bytes += bytes;
    for (const oldest of this.#items.keys()) {
      if (this.#bytes <= this.#maxBytes) break;
      this.delete(oldest);
    }
    this.#schedule();
  }

  delete(key: string): boolean {
    const item = this.#items.get(key);
    if (!item) return false;
    this.#items.delete(key);
    this.#bytes -= item.bytes;
    return true;
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#items.clear();
    this.#bytes = 0;
  }

  /** One timer, for the oldest entry: as all have the same time to live, it expires first. */
  #schedule(): void {
    const oldest = this.#items.values().next().value;
    if (this.#timer || !oldest) return;
    const expire = () => {
      this.#timer = undefined;
      const now = this.#now();
      for (const [key, { expiresAt }] of this.#items) {
        if (expiresAt > now) break;
        this.delete(key);
      }
      this.#schedule();
    };
    this.#timer = setTimeout(expire, Math.max(1, oldest.expiresAt - this.#now())).unref();
  }
}
