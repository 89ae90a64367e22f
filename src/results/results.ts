import { Flights } from './flights.ts';
import { type ContentName, textHash } from './hash.ts';
import type { Found, Made, ResultStats, ResultStore } from './resultStore.ts';

export interface OnceRequest<T> {
  readonly accountId: string;
  /** Any length; stored as a hash. */
  readonly idempotencyKey?: string | undefined;
  /** What tells this call's image and settings from others (`ContentName`); may download the image first. */
  readonly content: (signal: AbortSignal) => Promise<string>;
  /** Makes the result and charges for it. Its signal is that of all who wait for it. */
  readonly work: (signal: AbortSignal) => Promise<T>;
  readonly signal: AbortSignal;
}

export interface OnceResult<T> {
  readonly value: T;
  /**
   * False for the first of all who got this value, whoever asked for the work: that one is told of the charge.
   * True for all others: nothing is charged to them.
   */
  readonly replayed: boolean;
  /** The caller did not get the value after all: the next one is the first. Never rejects. */
  notDelivered(): Promise<void>;
}

/**
 * Kept results (CONTRACT section 5.1): a call of an account with an Idempotency-Key that was seen, or with an
 * image and settings that were, gets the result of the first one, waiting for it where it is still under way.
 * Only successes are kept. Values are shared and must not be changed.
 */
export class Results<T> {
  readonly #store: ResultStore<T> | undefined;
  readonly #flights = new Flights<Made<T>>();

  /** Without a store nothing is kept and calls do not wait for each other. */
  constructor(store: ResultStore<T> | undefined) {
    this.#store = store;
  }

  /** Names an image for `OnceRequest.content`. */
  get name(): ContentName {
    return this.#store?.name ?? (async () => '');
  }

  /** By what the books know a repeat of this call again; undefined where they need not. */
  repeatOf(
    content: string,
    idempotencyKey: string | undefined,
  ): { readonly content: string; readonly key?: string; readonly forMs: number } | undefined {
    const forMs = this.#store?.rememberMs;
    if (forMs === undefined) return undefined;
    return { content, forMs, ...(idempotencyKey !== undefined && { key: textHash(idempotencyKey) }) };
  }

  get stats(): ResultStats & { readonly inFlight: number } {
    return { results: 0, bytes: 0, ...this.#store?.stats, inFlight: this.#flights.size };
  }

  /** Rejects as `content` and `work` do, or with the signal's reason when the caller leaves. */
  async once(request: OnceRequest<T>): Promise<OnceResult<T>> {
    const { accountId, idempotencyKey, signal } = request;
    const store = this.#store;
    if (!store) {
      await request.content(signal);
      return { value: await request.work(signal), replayed: false, notDelivered: async () => {} };
    }

    const byContent = async (all: AbortSignal): Promise<Found<T>> => {
      const contentKey = `${accountId}:content:${await request.content(all)}`;
      const make = async (everyone: AbortSignal) => ({
        made: store.wrap(await request.work(everyone)),
        contentKey,
      });
      const once = (everyone: AbortSignal) => store.once(contentKey, make, everyone);
      return { made: await this.#flights.join(contentKey, once, all), contentKey };
    };
    const find = async () => {
      if (idempotencyKey === undefined) return (await byContent(signal)).made;
      const key = `${accountId}:key:${textHash(idempotencyKey)}`;
      return this.#flights.join(key, (all) => store.once(key, byContent, all), signal);
    };
    const made = await find();
    // Who left in the same moment must not be the one that is told.
    signal.throwIfAborted();
    const first = await made.handOut();
    const notDelivered = async () => {
      if (first) await made.takeBack();
    };
    if (signal.aborted) await notDelivered();
    signal.throwIfAborted();
    return { value: made.value, replayed: !first, notDelivered };
  }

  clear(): void {
    this.#store?.clear();
  }
}
