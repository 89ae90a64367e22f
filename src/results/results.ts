import { Keyv } from 'keyv';
import { BoundedStore } from './boundedStore.ts';
import { Flights } from './flights.ts';
import { textHash } from './hash.ts';

export interface ResultsOptions<T> {
  /** How long a result is kept; 0 = nothing is kept and calls do not wait for each other. */
  readonly keepSeconds: number;
  /** Bound of all kept results together. */
  readonly maxBytes: number;
  readonly bytesOf: (value: T) => number;
  /** Hears that a result could not be kept; the call that made it succeeds all the same. */
  readonly onError: (error: unknown) => void;
}

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
  /** The caller did not get the value after all: the next one is the first. */
  notDelivered(): void;
}

/** A value and whether anybody got it. */
interface Made<T> {
  readonly value: T;
  handedOut: boolean;
}

type Kept<T> = Made<T> | { readonly sameAs: string };

interface Found<T> {
  readonly made: Made<T>;
  readonly contentKey: string;
}

/**
 * Kept results (CONTRACT section 5.1): a call of an account with an Idempotency-Key that was seen, or with an
 * image and settings that were, gets the result of the first one, waiting for it where it is still under way.
 * Only successes are kept. Values are shared and must not be changed.
 */
export class Results<T> {
  readonly #options: ResultsOptions<T>;
  readonly #store: BoundedStore;
  readonly #kept: Keyv<Kept<T>>;
  readonly #flights = new Flights<Found<T>>();

  constructor(options: ResultsOptions<T>) {
    this.#options = options;
    this.#store = new BoundedStore(options.maxBytes, (entry) => {
      const { value } = entry as { value: Kept<T> };
      return 'value' in value ? options.bytesOf(value.value) : 0;
    });
    this.#kept = new Keyv<Kept<T>>({
      store: this.#store,
      ttl: options.keepSeconds * 1000,
      throwOnErrors: true,
    });
    // By reference: serialisation would turn every picture into base64.
    this.#kept.serialize = undefined;
    this.#kept.deserialize = undefined;
    this.#kept.on('error', options.onError);
  }

  get stats(): { readonly results: number; readonly bytes: number; readonly inFlight: number } {
    return { results: this.#store.size, bytes: this.#store.bytes, inFlight: this.#flights.size };
  }

  /** Rejects as `content` and `work` do, or with the signal's reason when the caller leaves. */
  async once(request: OnceRequest<T>): Promise<OnceResult<T>> {
    const { accountId, idempotencyKey, signal } = request;
    if (this.#options.keepSeconds === 0) {
      await request.content(signal);
      return handOut({ value: await request.work(signal), handedOut: false });
    }

    const byContent = async (all: AbortSignal): Promise<Found<T>> => {
      const contentKey = `${accountId}:content:${await request.content(all)}`;
      const make = async (everyone: AbortSignal): Promise<Found<T>> => {
        const kept = await this.#find(contentKey);
        if (kept) return kept;
        const made = { value: await request.work(everyone), handedOut: false };
        await this.#keep(contentKey, made);
        return { made, contentKey };
      };
      return this.#flights.join(contentKey, make, all);
    };
    const byKey = async (all: AbortSignal, key: string): Promise<Found<T>> => {
      const kept = await this.#find(key);
      if (kept) return kept;
      const found = await byContent(all);
      await this.#keep(key, { sameAs: found.contentKey });
      return found;
    };

    const find = () => {
      if (idempotencyKey === undefined) return byContent(signal);
      const key = `${accountId}:key:${textHash(idempotencyKey)}`;
      return this.#flights.join(key, (all) => byKey(all, key), signal);
    };
    const { made } = await find();
    // Who left in the same moment must not be the one that is told.
    signal.throwIfAborted();
    return handOut(made);
  }

  clear(): void {
    this.#store.clear();
  }

  async #find(key: string): Promise<Found<T> | undefined> {
    const kept = await this.#kept.get(key);
    if (kept === undefined) return undefined;
    return 'value' in kept ? { made: kept, contentKey: key } : this.#find(kept.sameAs);
  }

  async #keep(key: string, kept: Kept<T>): Promise<void> {
    try {
      await this.#kept.set(key, kept);
    } catch (error) {
      this.#options.onError(error);
    }
  }
}

function handOut<T>(made: Made<T>): OnceResult<T> {
  const replayed = made.handedOut;
  made.handedOut = true;
  const notDelivered = () => {
    if (!replayed) made.handedOut = false;
  };
  return { value: made.value, replayed, notDelivered };
}
