import { Keyv } from 'keyv';
import { BoundedStore } from './boundedStore.ts';
import { type ContentName, createContentName } from './hash.ts';
import { Made, type Paid } from './made.ts';
import type { Found, ResultStats, ResultStore } from './resultStore.ts';

export interface MemoryStoreOptions<T> {
  readonly keepSeconds: number;
  /** Bound of all kept results together. */
  readonly maxBytes: number;
  readonly bytesOf: (value: T) => number;
  /** 32 bytes that last: with them names do too, and the books can remember what was charged. */
  readonly contentKey?: Uint8Array;
  /** Hears that a result could not be kept; the call that made it succeeds all the same. */
  readonly onError: (error: unknown) => void;
}

type Kept<T> = Made<T> | { readonly sameAs: string };

/** Results in the memory of one process. */
export class MemoryResultStore<T> implements ResultStore<T> {
  readonly name: ContentName;
  readonly rememberMs: number | undefined;
  readonly #store: BoundedStore;
  readonly #kept: Keyv<Kept<T>>;
  readonly #onError: (error: unknown) => void;

  constructor({ keepSeconds, maxBytes, bytesOf, contentKey, onError }: MemoryStoreOptions<T>) {
    this.name = createContentName(contentKey);
    this.rememberMs = contentKey && keepSeconds * 1000;
    this.#onError = onError;
    this.#store = new BoundedStore(maxBytes, (entry) => {
      const { value } = entry as { value: Kept<T> };
      return 'value' in value ? bytesOf(value.value) : 0;
    });
    this.#kept = new Keyv<Kept<T>>({ store: this.#store, ttl: keepSeconds * 1000, throwOnErrors: true });
    // By reference: serialisation would turn every picture into base64.
    this.#kept.serialize = undefined;
    this.#kept.deserialize = undefined;
    this.#kept.on('error', onError);
  }

  get stats(): ResultStats {
    return { results: this.#store.size, bytes: this.#store.bytes };
  }

  wrap(paid: Paid<T>): Made<T> {
    let told = false;
    return new Made(paid, {
      first: async () => {
        const first = !told;
        told = true;
        return first;
      },
      takeBack: async () => {
        told = false;
      },
    });
  }

  async once(key: string, make: (signal: AbortSignal) => Promise<Found<T>>, signal: AbortSignal) {
    const kept = await this.#find(key);
    const again = kept && (await kept.isPaid()) ? kept.share() : undefined;
    if (again) return again;
    const { share, contentKey } = await make(signal);
    await this.#keep(key, contentKey === key ? share.made : { sameAs: contentKey });
    return share;
  }

  clear(): void {
    this.#store.clear();
  }

  async #find(key: string): Promise<Made<T> | undefined> {
    const kept = await this.#kept.get(key);
    if (kept === undefined) return undefined;
    return 'value' in kept ? kept : this.#find(kept.sameAs);
  }

  async #keep(key: string, kept: Kept<T>): Promise<void> {
    try {
      await this.#kept.set(key, kept);
    } catch (error) {
      this.#onError(error);
    }
  }
}
