import { Keyv } from 'keyv';
import { BoundedStore } from './boundedStore.ts';
import { type ContentIdentifier, createContentIdentifier } from './hash.ts';
import type { Acquired, KeyedHandle, ResultStats, ResultStore, ResultStoreOptions } from './resultStore.ts';
import { type Charged, SharedResult } from './sharedResult.ts';

interface InMemoryStoreOptions<T> extends ResultStoreOptions {
  readonly bytesOf: (value: T) => number;
}

type CacheEntry<T> = SharedResult<T> | { readonly sameAs: string };

/** The lease on a key: a process acquires each once at a time, so nobody else can have it. */
const lease = { outcome: 'leased', release: async () => {} } as const;

/** Results cached in the memory of one process. */
export class InMemoryResultStore<T> implements ResultStore<T> {
  readonly contentId: ContentIdentifier;
  readonly ttlMs: number;
  /** The results in the envelopes of keyv and of its adapter. */
  readonly #store: BoundedStore<{ readonly value: { readonly value: CacheEntry<T> } }>;
  readonly #cache: Keyv<CacheEntry<T>>;
  readonly #onError: (error: unknown) => void;

  constructor({ ttlSeconds, maxBytes, bytesOf, contentKey, onError }: InMemoryStoreOptions<T>) {
    this.contentId = createContentIdentifier(contentKey);
    this.ttlMs = ttlSeconds * 1000;
    this.#onError = onError;
    this.#store = new BoundedStore(
      maxBytes,
      ({ value: { value } }) => ('value' in value ? bytesOf(value.value) : 0),
      this.ttlMs,
    );
    // Held by reference: serialising would turn every image into base64. Without a listener of errors keyv throws them.
    this.#cache = new Keyv<CacheEntry<T>>({ store: this.#store, serialization: false });
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

  async acquire(key: string): Promise<Acquired<T>> {
    const cached = await this.#find(key);
    const handle = cached && (await cached.isChargeValid()) ? cached.handle() : undefined;
    return handle ? { outcome: 'cached', handle } : lease;
  }

  async cache(key: string, { handle, contentKey }: KeyedHandle<T>): Promise<void> {
    try {
      await this.#cache.set(key, contentKey === key ? handle.result : { sameAs: contentKey });
    } catch (error) {
      this.#onError(error);
    }
  }

  clear(): void {
    this.#store.clear();
  }

  async #find(key: string): Promise<SharedResult<T> | undefined> {
    const entry = await this.#cache.get(key);
    if (entry === undefined) return undefined;
    return 'value' in entry ? entry : this.#find(entry.sameAs);
  }
}
