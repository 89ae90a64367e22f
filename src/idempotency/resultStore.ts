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

export interface ResultStoreOptions {
  readonly ttlSeconds: number;
  /** Bound of all cached results together. */
  readonly maxBytes: number;
  /** 32 bytes that outlive the process, and that all servers of a ledger share: names and remembered charges depend on them. */
  readonly contentKey: Uint8Array;
  /** Called if a result could not be cached; the request that made it succeeds nevertheless. */
  readonly onError: (error: unknown) => void;
}

/**
 * The cache of results, and the leases of those who make them: in the memory of this process, or in Redis for several nodes.
 * Values are shared and must not be changed. Within a process the caller acquires a key once at a time (`SingleFlight`).
 */
export interface ResultStore<T> {
  /** Names contents; equal contents have equal names for as long and as far as the store reaches. */
  readonly contentId: ContentIdentifier;
  /** Milliseconds for which a result is cached, and for which the ledger remembers its charge in case the store loses it. */
  readonly ttlMs: number;
  /** A new result of this process, not cached yet. */
  wrap(charged: Charged<T>): SharedResult<T>;
  /**
   * The result cached under the key, or else a lease on it; waits while another node has that. All nodes together
   * have one lease of a key, unless the store loses it. Rejects with the signal's reason, and STORE_UNAVAILABLE.
   */
  acquire(key: string, signal: AbortSignal): Promise<Acquired<T>>;
  /** Caches a new result under a leased key, if there is room. Never rejects. */
  cache(key: string, made: KeyedHandle<T>): Promise<void>;
  /** Its size as this process knows it. */
  readonly stats: ResultStats;
  /** Forgets everything that only this process holds. */
  clear(): void;
}
