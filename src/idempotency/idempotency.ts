import type { Repeatable } from './chargedContent.ts';
import { type FurtherImages, textHash } from './hash.ts';
import { contentKey, type KeyedHandle, type ResultStats, type ResultStore } from './resultStore.ts';
import { type Charged, type ResultHandle, SharedResult } from './sharedResult.ts';
import { byHandle, SingleFlight } from './singleFlight.ts';

/** The inputs of a call, once they are loaded; calls with equal content share one result. */
export interface Content extends FurtherImages {
  readonly image: Uint8Array;
  /** Canonical text of the options: equal for calls that ask for the same result (`ContentIdentifier`). */
  readonly settings: string;
}

/** The names by which a content is recognised elsewhere. */
export interface ContentNames {
  /** Its name in the ledger; undefined where it needs none. */
  readonly repeat: Repeatable | undefined;
  /** Name of the image alone, in other caches of this process; undefined where nothing is cached. */
  readonly imageId: string | undefined;
}

/** One of those who may wait for a result. */
export interface Caller {
  readonly accountId: string;
  /** Any length; stored as a hash. */
  readonly idempotencyKey?: string | undefined;
  /**
   * Keeps the memory of what the caller sent, or had downloaded, counted until the returned function is called: work that
   * the caller has started uses it for others after the caller has left.
   */
  readonly retain: () => () => Promise<void>;
  readonly signal: AbortSignal;
}

/** Work that is shared: the signal aborts when the last caller that waits for it leaves. */
type SharedWork<T> = (signal: AbortSignal) => Promise<T>;

/**
 * Repeated requests (docs/contract.md section 5.1): a call with an Idempotency-Key, or with an image and settings, that
 * the account has sent before gets the result of the first call, waiting for it if it is in flight. Only successes are
 * cached. Values are shared and must not be changed.
 *
 * The states of one content (account, image and settings), and the files that know them:
 *
 *              load, look up: nothing           made and charged                  an answer was sent
 *    UNKNOWN ────────────────────▶ IN FLIGHT ────────────────────▶ UNDELIVERED ────────────────────▶ DELIVERED
 *       ▲                         singleFlight.ts                sharedResult.ts                        │
 *       │        it failed, or      │    ▲  │                          │ no answer was sent             │
 *       │        all callers aborted│    └──┘ one more caller waits    ▼                                │
 *       ├───────────────────────────┘                                VOID: its charge is released       │
 *       │                                                              │                                │
 *       └──────────────────────────────────────────────────────────────┴────────────────────────────────┘
 *                                              time to live over, no room, or its charge was refunded (resultStore.ts)
 *
 * UNDELIVERED and DELIVERED results are looked up and answered with; the first answer reports the charge, all others are
 * replays that cost nothing. An Idempotency-Key leads to a content: while its first call is in flight others with it wait,
 * whatever they send; afterwards it stands for that content until the result is gone. What a content was charged outlives
 * its result for a while (chargedContent.ts), so that work which has to be repeated is not charged twice. What a charge
 * goes through is drawn in docs/credits.md.
 */
export class Idempotency<T> {
  readonly #store: ResultStore<T> | undefined;
  readonly #inFlight = new SingleFlight<ResultHandle<T>>(byHandle());

  /** `store` undefined: nothing is cached, and calls do not wait for each other. */
  constructor(store: ResultStore<T> | undefined) {
    this.#store = store;
  }

  get stats(): ResultStats & { readonly inFlight: number } {
    return { results: 0, bytes: 0, ...this.#store?.stats, inFlight: this.#inFlight.size };
  }

  /**
   * The result for the caller's Idempotency-Key. `byContent` is not called for a known key; it loads what the caller sent and
   * ends with `resultForContent`. Rejects as that does, or with the signal's reason when the caller leaves.
   */
  async resultFor(caller: Caller, byContent: SharedWork<KeyedHandle<T>>): Promise<ResultHandle<T>> {
    const { accountId, idempotencyKey, signal } = caller;
    const handle =
      this.#store && idempotencyKey !== undefined
        ? await this.#join(
            this.#store,
            `${accountId}:key:${textHash(idempotencyKey)}`,
            caller,
            byContent,
            signal,
          )
        : (await byContent(signal)).handle;
    // A caller that left in the same moment must not be the one that reports the charge.
    if (!signal.aborted) await handle.claimChargeReport();
    if (!signal.aborted) return handle;
    await handle.end('unsent');
    throw signal.reason;
  }

  /** The result for a content, whoever sent it and with whatever key. `make` makes and charges it. Rejects as `make`. */
  async resultForContent(
    caller: Caller,
    content: Content,
    make: (names: ContentNames, signal: AbortSignal) => Promise<Charged<T>>,
    signal: AbortSignal,
  ): Promise<KeyedHandle<T>> {
    const { accountId } = caller;
    const store = this.#store;
    if (!store) {
      const names = { repeat: undefined, imageId: undefined };
      return { handle: unsharedHandle(await make(names, signal)), contentKey: '' };
    }
    const ids = await store.contentId(content.image, content.settings, content, signal);
    const key = contentKey(accountId, ids.content);
    const repeat = { content: ids.content, forMs: store.ttlMs };
    const work = async (sharedSignal: AbortSignal) => ({
      handle: firstHandle(store.wrap(await make({ repeat, imageId: ids.image }, sharedSignal))),
      contentKey: key,
    });
    return { handle: await this.#join(store, key, caller, work, signal), contentKey: key };
  }

  /** Waits for the work on a key that is in flight, or starts it; what the caller sent stays counted while it lasts. */
  #join(
    store: ResultStore<T>,
    key: string,
    { retain }: Caller,
    work: SharedWork<KeyedHandle<T>>,
    signal: AbortSignal,
  ): Promise<ResultHandle<T>> {
    const start = async (sharedSignal: AbortSignal) => {
      const release = retain();
      try {
        return await cachedOrMade(store, key, work, sharedSignal);
      } finally {
        await release();
      }
    };
    return this.#inFlight.join(key, start, signal);
  }

  clear(): void {
    this.#store?.clear();
  }
}

/** The cached result of a key, or one that is made while this node has the lease on the key, and then cached. */
async function cachedOrMade<T>(
  store: ResultStore<T>,
  key: string,
  work: SharedWork<KeyedHandle<T>>,
  signal: AbortSignal,
): Promise<ResultHandle<T>> {
  const acquired = await store.acquire(key, signal);
  if (acquired.outcome === 'cached') return acquired.handle;
  try {
    const made = await work(signal);
    await store.cache(key, made);
    return made.handle;
  } finally {
    await acquired.release();
  }
}

function firstHandle<T>(result: SharedResult<T>): ResultHandle<T> {
  const handle = result.handle();
  if (!handle) throw new Error('A new result is void.');
  return handle;
}

const unsharedHandle = <T>(charged: Charged<T>): ResultHandle<T> =>
  firstHandle(new SharedResult(charged, { claim: async () => true, release: async () => {} }));
