import type { ContentName } from './hash.ts';

/** A result that was made and charged once, for all who ask for it. */
export interface Made<T> {
  readonly value: T;
  /** True for the first of all whom it is handed to: that one is told of the charge. Never rejects. */
  handOut(): Promise<boolean>;
  /** The first one did not get it after all. Never rejects. */
  takeBack(): Promise<void>;
}

/** A result and the key under which the value itself is kept; other keys only lead there. */
export interface Found<T> {
  readonly made: Made<T>;
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
  /** How pictures are named: for as long and as far as the store lasts. */
  readonly name: ContentName;
  /**
   * For how long the books remember a charge, milliseconds, in case the store loses the result. Undefined where
   * the names are lost with it.
   */
  readonly rememberMs: number | undefined;
  /** A new result of this process, which is not kept yet. */
  wrap(value: T): Made<T>;
  /**
   * What is kept under the key; else what `make` gives, which is then kept if there is room. On all nodes
   * together one `make` of a key runs at a time. Rejects as `make` does, with the signal's reason when the
   * caller leaves, and with STORE_UNAVAILABLE.
   */
  once(key: string, make: (signal: AbortSignal) => Promise<Found<T>>, signal: AbortSignal): Promise<Made<T>>;
  /** What is known of its size here. */
  readonly stats: ResultStats;
  /** Forgets what this process alone keeps. */
  clear(): void;
}
