import type { ContentName } from './hash.ts';
import type { Paid, ResultHandle, SharedResult } from './sharedResult.ts';

/** A handle to a result, and the key under which the value itself is kept; other keys only lead there. */
export interface Found<T> {
  readonly handle: ResultHandle<T>;
  readonly contentKey: string;
}

export interface ResultStats {
  readonly results: number;
  readonly bytes: number;
}

/**
 * Where results are kept, and where it is known which work is under way: the memory of this process, or Redis
 * for several nodes. Values are shared and must not be changed. In one process the caller sees to it that
 * nobody asks twice for a key at a time.
 */
export interface ResultStore<T> {
  /** How images are named: for as long and as far as the store lasts. */
  readonly name: ContentName;
  /**
   * For how long the books remember a charge, milliseconds, in case the store loses the result. Undefined where
   * the names are lost with it.
   */
  readonly rememberMs: number | undefined;
  /** A new result of this process, which is not kept yet. */
  wrap(paid: Paid<T>): SharedResult<T>;
  /**
   * A handle to what is kept under the key; else what `make` gives, which is then kept if there is room. On all nodes
   * together one `make` of a key runs at a time, unless the store loses what it knows. Rejects as `make` does, with the
   * signal's reason when the caller leaves, and with STORE_UNAVAILABLE; never once there is a handle.
   */
  once(
    key: string,
    make: (signal: AbortSignal) => Promise<Found<T>>,
    signal: AbortSignal,
  ): Promise<ResultHandle<T>>;
  /** What is known of its size here. */
  readonly stats: ResultStats;
  /** Forgets what this process alone keeps. */
  clear(): void;
}
