import type { ContentName } from './hash.ts';
import type { Charged, ResultHandle, SharedResult } from './sharedResult.ts';

/** Key of an account's result for a content. */
export const contentKey = (accountId: string, content: string): string => `${accountId}:content:${content}`;

/** A handle to a result, and the key under which its value is cached; other keys are aliases of that one. */
export interface Found<T> {
  readonly handle: ResultHandle<T>;
  readonly contentKey: string;
}

export interface ResultStats {
  readonly results: number;
  readonly bytes: number;
}

/**
 * The cache of results, and what work is in flight: in the memory of this process, or in Redis for several nodes. Values
 * are shared and must not be changed. Within a process the caller asks for a key once at a time (`SingleFlight`).
 */
export interface ResultStore<T> {
  /** Names contents; equal contents have equal names for as long and as far as the store reaches. */
  readonly name: ContentName;
  /**
   * Milliseconds for which the ledger remembers a charge, in case the store loses the result. Undefined if the names are
   * lost with it.
   */
  readonly rememberMs: number | undefined;
  /** A new result of this process, not cached yet. */
  wrap(charged: Charged<T>): SharedResult<T>;
  /**
   * A handle to the result cached under the key; else the one of `make`, which is then cached if there is room. One `make`
   * of a key runs at a time on all nodes together, unless the store loses its locks. Rejects as `make` does, with the
   * signal's reason, and with STORE_UNAVAILABLE; never after a handle exists.
   */
  once(
    key: string,
    make: (signal: AbortSignal) => Promise<Found<T>>,
    signal: AbortSignal,
  ): Promise<ResultHandle<T>>;
  /** Its size as this process knows it. */
  readonly stats: ResultStats;
  /** Forgets everything that only this process holds. */
  clear(): void;
}
