import { type ContentName, textHash } from './hash.ts';
import { contentKey } from './resultKeys.ts';
import type { Found, ResultStats, ResultStore } from './resultStore.ts';
import { type Ending, type Paid, type ResultHandle, SharedResult } from './sharedResult.ts';
import { SingleFlight } from './singleFlight.ts';

export interface OnceRequest<T> {
  readonly accountId: string;
  /** Any length; stored as a hash. */
  readonly idempotencyKey?: string | undefined;
  /** What tells this call's image and settings from others (`ContentName`); may download the image first. */
  readonly content: (signal: AbortSignal) => Promise<string>;
  /** Makes the result and charges for it. Its signal is that of all who wait for it. */
  readonly work: (signal: AbortSignal) => Promise<Paid<T>>;
  readonly signal: AbortSignal;
}

export interface OnceResult<T> {
  readonly value: T;
  /**
   * False for the first of all who got this value, whoever asked for the work: that one is told of the charge.
   * True for all others: nothing is charged to them.
   */
  readonly replayed: boolean;
  /**
   * To be called once, when it is known what became of the answer. One that is not delivered leaves it to the next caller
   * to be the first; a result of which nothing was ever sent is void, and its charge is released.
   */
  end(ending: Ending): Promise<void>;
}

/**
 * Kept results (docs/contract.md section 5.1): a call of an account with an Idempotency-Key that was seen, or with an
 * image and settings that were, gets the result of the first one, waiting for it where it is still under way.
 * Only successes are kept. Values are shared and must not be changed.
 */
export class Results<T> {
  readonly #store: ResultStore<T> | undefined;
  readonly #inFlight = new SingleFlight<ResultHandle<T>>();

  /** Without a store nothing is kept and calls do not wait for each other. */
  constructor(store: ResultStore<T> | undefined) {
    this.#store = store;
  }

  /** Names an image for `OnceRequest.content`. */
  get name(): ContentName {
    return this.#store?.name ?? (async () => '');
  }

  /** By what the books recognise a repeat of this content; undefined where they need not. */
  repeatOf(content: string): { readonly content: string; readonly forMs: number } | undefined {
    const forMs = this.#store?.rememberMs;
    return forMs === undefined ? undefined : { content, forMs };
  }

  get stats(): ResultStats & { readonly inFlight: number } {
    return { results: 0, bytes: 0, ...this.#store?.stats, inFlight: this.#inFlight.size };
  }

  /** Rejects as `content` and `work` do, or with the signal's reason when the caller leaves. */
  async once(request: OnceRequest<T>): Promise<OnceResult<T>> {
    const { signal } = request;
    const handle = await this.#handle(request);
    // Who left in the same moment must not be the one that is told.
    const first = !signal.aborted && (await handle.isFirst());
    if (signal.aborted) {
      await handle.end('unsent');
      throw signal.reason;
    }
    return { value: handle.value, replayed: !first, end: (ending) => handle.end(ending) };
  }

  async #handle(request: OnceRequest<T>): Promise<ResultHandle<T>> {
    const { accountId, idempotencyKey, signal } = request;
    const store = this.#store;
    if (!store) {
      await request.content(signal);
      return unsharedHandle(await request.work(signal));
    }
    const byContent = async (all: AbortSignal): Promise<Found<T>> => {
      const key = contentKey(accountId, await request.content(all));
      const make = async (everyone: AbortSignal) => ({
        handle: firstHandle(store.wrap(await request.work(everyone))),
        contentKey: key,
      });
      const once = (everyone: AbortSignal) => store.once(key, make, everyone);
      return { handle: await this.#inFlight.join(key, once, all), contentKey: key };
    };
    if (idempotencyKey === undefined) return (await byContent(signal)).handle;
    const key = `${accountId}:key:${textHash(idempotencyKey)}`;
    return this.#inFlight.join(key, (all) => store.once(key, byContent, all), signal);
  }

  clear(): void {
    this.#store?.clear();
  }
}

/** Of a result that was just made. */
function firstHandle<T>(result: SharedResult<T>): ResultHandle<T> {
  const handle = result.handle();
  if (!handle) throw new Error('A new result is void.');
  return handle;
}

const unsharedHandle = <T>(paid: Paid<T>): ResultHandle<T> =>
  firstHandle(new SharedResult(paid, { first: async () => true, takeBack: async () => {} }));
