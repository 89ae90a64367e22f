import type { ContentIdentifier } from './hash.ts';
import type { Charged, ResultHandle, SharedResult } from './sharedResult.ts';

/** Key of an account's result for a content. */
export const contentKey = (accountId: string, content: string): string => `${accountId}:content:${content}`;

/** A handle to a result, and the key under which its value is cached; other keys are aliases of that one. */
export interface KeyedHandle<T> {
  readonly handle: ResultHandle<T>;
  readonly contentKey: string;
}

export interface ResultStats {
  readonly results: number;
  readonly bytes: number;
}

/** A key's cached result, or the lease to make one, which the caller must release. */
export type Acquired<T> =
  | { readonly outcome: 'cached'; readonly handle: ResultHandle<T> }
  | {
      readonly outcome: 'leased';
      /** Never rejects. */
      release(): Promise<void>;
    };

/**
 * The cache of results, and the leases of those who make them: in the memory of this process, or in Redis for several nodes.
 * Values are shared and must not be changed. Within a process the caller acquires a key once at a time (`SingleFlight`).
 */
export interface ResultStore<T> {
  /** Names contents; equal contents have equal names for as long and as far as the store reaches. */
  readonly contentId: ContentIdentifier;
  /**
   * Milliseconds for which the ledger remembers a charge, in case the store loses the result. Undefined if the names are
   * lost with it.
   */
  readonly rememberMs: number | undefined;
  /** A new result of this process, not cached yet. */
  wrap(charged: Charged<T>): SharedResult<T>;
  /**
   * The result cached under the key, or else a lease on the key; waits while another node has the lease. All nodes together
   * have one lease of a key at a time, unless the store loses it. Rejects with the signal's reason, and with
   * STORE_UNAVAILABLE.
   */
  acquire(key: string, signal: AbortSignal): Promise<Acquired<T>>;
  /** Caches a new result under a leased key, if there is room. Never rejects. */
  cache(key: string, made: KeyedHandle<T>): Promise<void>;
  /** Its size as this process knows it. */
  readonly stats: ResultStats;
  /** Forgets everything that only this process holds. */
  clear(): void;
}
