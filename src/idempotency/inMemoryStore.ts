import { Keyv } from 'keyv';
import { BoundedStore } from './boundedStore.ts';
import { type ContentName, createContentName } from './hash.ts';
import type { Found, ResultStats, ResultStore } from './resultStore.ts';
import { type Charged, SharedResult } from './sharedResult.ts';

interface InMemoryStoreOptions<T> {
  readonly ttlSeconds: number;
  /** Bound of all cached results together. */
  readonly maxBytes: number;
  readonly bytesOf: (value: T) => number;
  /** 32 persistent bytes: names then outlive the process, and the ledger can remember charges by them. */
  readonly contentKey?: Uint8Array;
  /** Called if a result could not be cached; the request that made it succeeds nevertheless. */
  readonly onError: (error: unknown) => void;
}

type CacheEntry<T> = SharedResult<T> | { readonly sameAs: string };

/** Results cached in the memory of one process. */
export class InMemoryResultStore<T> implements ResultStore<T> {
  readonly name: ContentName;
  readonly rememberMs: number | undefined;
  readonly #store: BoundedStore;
  readonly #kept: Keyv<CacheEntry<T>>;
  readonly #onError: (error: unknown) => void;

  constructor({ ttlSeconds, maxBytes, bytesOf, contentKey, onError }: InMemoryStoreOptions<T>) {
    this.name = createContentName(contentKey);
    this.rememberMs = contentKey && ttlSeconds * 1000;
    this.#onError = onError;
    this.#store = new BoundedStore(maxBytes, (entry) => {
      const { value } = entry as { value: CacheEntry<T> };
      return 'value' in value ? bytesOf(value.value) : 0;
    });
    this.#kept = new Keyv<CacheEntry<T>>({ store: this.#store, ttl: ttlSeconds * 1000, throwOnErrors: true });
    // Held by reference: serialising would turn every image into base64.
    this.#kept.serialize = undefined;
    this.#kept.deserialize = undefined;
    this.#kept.on('error', onError);
  }

  get stats(): ResultStats {
    return { results: this.#store.size, bytes: this.#store.bytes };
  }

  wrap(charged: Charged<T>): SharedResult<T> {
    let reported = false;
    return new SharedResult(charged, {
      claim: async () => {
        const first = !reported;
        reported = true;
        return first;
      },
      release: async () => {
        reported = false;
      },
    });
  }

  async once(key: string, make: (signal: AbortSignal) => Promise<Found<T>>, signal: AbortSignal) {
    const kept = await this.#find(key);
    const again = kept && (await kept.isChargeValid()) ? kept.handle() : undefined;
    if (again) return again;
    const { handle, contentKey } = await make(signal);
    await this.#keep(key, contentKey === key ? handle.result : { sameAs: contentKey });
    return handle;
  }

  clear(): void {
    this.#store.clear();
  }

  async #find(key: string): Promise<SharedResult<T> | undefined> {
    const kept = await this.#kept.get(key);
    if (kept === undefined) return undefined;
    return 'value' in kept ? kept : this.#find(kept.sameAs);
  }

  async #keep(key: string, kept: CacheEntry<T>): Promise<void> {
    try {
      await this.#kept.set(key, kept);
    } catch (error) {
      this.#onError(error);
    }
  }
}
