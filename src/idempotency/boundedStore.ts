interface Slot {
  readonly entry: unknown;
  readonly bytes: number;
  /** By the store's clock. */
  readonly expiresAt: number;
}

/** Bytes of a slot beside its content: key, objects, map entry. */
const slotBytes = 512;

/**
 * An in-memory store for keyv, bounded in bytes and in time. The oldest entry is evicted first, and every entry is removed
 * when it expires, read or not. Entries are held by reference and must not be changed.
 */
export class BoundedStore {
  /** Oldest first: a Map keeps the order of insertion. */
  readonly #slots = new Map<string, Slot>();
  readonly #maxBytes: number;
  readonly #bytesOf: (entry: unknown) => number;
  readonly #now: () => number;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `now`: milliseconds of a clock that nobody sets; otherwise entries would stay for as long as it is set back. */
  constructor(
    maxBytes: number,
    bytesOf: (entry: unknown) => number,
    now: () => number = () => performance.now(),
  ) {
    this.#maxBytes = maxBytes;
    this.#bytesOf = bytesOf;
    this.#now = now;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#slots.size;
  }

  get(key: string): unknown {
    return this.#slots.get(key)?.entry;
  }

  has(key: string): boolean {
    return this.#slots.has(key);
  }

  /** `ttl` in milliseconds, more than 0. An entry larger than the whole store is not kept. */
  set(key: string, entry: unknown, ttl: number): void {
    this.delete(key);
    const bytes = this.#bytesOf(entry) + slotBytes;
    if (bytes > this.#maxBytes) return;
    this.#slots.set(key, { entry, bytes, expiresAt: this.#now() + ttl });
    this.#bytes += bytes;
    for (const oldest of this.#slots.keys()) {
      if (this.#bytes <= this.#maxBytes) break;
      this.delete(oldest);
    }
    this.#schedule();
  }

  delete(key: string): boolean {
    const slot = this.#slots.get(key);
    if (!slot) return false;
    this.#slots.delete(key);
    this.#bytes -= slot.bytes;
    return true;
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#slots.clear();
    this.#bytes = 0;
  }

  /** One timer, for the oldest entry: as all have the same time to live, it expires first. */
  #schedule(): void {
    const oldest = this.#slots.values().next().value;
    if (this.#timer || !oldest) return;
    const expire = () => {
      this.#timer = undefined;
      const now = this.#now();
      for (const [key, { expiresAt }] of this.#slots) {
        if (expiresAt > now) break;
        this.delete(key);
      }
      this.#schedule();
    };
    this.#timer = setTimeout(expire, Math.max(1, oldest.expiresAt - this.#now())).unref();
  }
}
