import { AsyncLocalStorage } from 'node:async_hooks';
import type { Reservations } from '../../src/billing/types.ts';
import type { CachedResult } from '../../src/cutout/result.ts';
import { cachedResultCodec } from '../../src/idempotency/codec.ts';
import { createContentIdentifier, textHash } from '../../src/idempotency/hash.ts';
import type { Acquired, KeyedHandle, ResultStore } from '../../src/idempotency/resultStore.ts';
import { type ChargeReport, type ResultHandle, SharedResult } from '../../src/idempotency/sharedResult.ts';

/** Counts its pending operations: at 0, everything waits for the test. */
export class Activity {
  active = 0;
  /** For the asynchronous context of a call: the leases on contents that it holds. */
  readonly #leases = new AsyncLocalStorage<{ held: number }>();

  /** Runs one call, whose leases are counted. */
  call<T>(work: () => T): T {
    return this.#leases.run({ held: 0 }, work);
  }

  /** The present call makes a result, until it calls the returned function. */
  lease(): () => void {
    const leases = this.#leases.getStore();
    if (!leases) throw new Error('a lease outside of a call');
    leases.held++;
    this.active++;
    return () => {
      leases.held--;
      this.active--;
    };
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.active++;
    try {
      return await work();
    } finally {
      this.active--;
    }
  }

  /** Operations that wait for the test, and the making of the result that waits for them. */
  async parked<T>(wait: () => Promise<T>, more = 0): Promise<T> {
    const parked = more + (this.#leases.getStore()?.held ?? 0);
    this.active -= parked;
    try {
      return await wait();
    } finally {
      this.active += parked;
    }
  }
}

type Entry =
  | { readonly facts: unknown; readonly bytes: Buffer; readonly until: number }
  | { readonly sameAs: string };

/** State shared by nodes as in Redis, with the test's clock and faults. */
export class SharedPlace {
  readonly kept = new Map<string, Entry>();
  readonly locks = new Map<string, SharedStore>();
  /** The bytes of results that were read here, new ones for each read. */
  readonly copies = new WeakSet<Buffer>();
  readonly #waiting = new Set<() => void>();

  /** Waiting callers check again. */
  wake(): void {
    for (const look of this.#waiting) look();
    this.#waiting.clear();
  }

  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        signal.removeEventListener('abort', look);
        resolve();
      };
      this.#waiting.add(look);
      signal.addEventListener('abort', look, { once: true });
    });
  }

  evict(): void {
    this.kept.clear();
  }

  loseLocks(): void {
    this.locks.clear();
    this.wake();
  }

  /** The leases of a dead node. */
  forget(node: SharedStore): void {
    for (const [key, holder] of this.locks) if (holder === node) this.locks.delete(key);
    this.wake();
  }
}

const chargeReport = (): ChargeReport => ({ claim: async () => true, release: async () => {} });

/** One node's view of it: results are serialised as through Redis, between nodes and on one. */
export class SharedStore implements ResultStore<CachedResult> {
  readonly contentId = createContentIdentifier(Buffer.alloc(32, 1));
  readonly ttlMs = 600_000;
  readonly stats = { results: 0, bytes: 0 };
  dead = false;
  readonly #place: SharedPlace;
  readonly #activity: Activity;
  readonly #now: () => number;
  readonly #codec: ReturnType<typeof cachedResultCodec<CachedResult>>;

  constructor(place: SharedPlace, activity: Activity, now: () => number, reservations: Reservations) {
    this.#place = place;
    this.#activity = activity;
    this.#now = now;
    this.#codec = cachedResultCodec<CachedResult>(reservations);
  }

  wrap(charged: ConstructorParameters<typeof SharedResult<CachedResult>>[0]): SharedResult<CachedResult> {
    return new SharedResult(charged, chargeReport());
  }

  async acquire(key: string, signal: AbortSignal): Promise<Acquired<CachedResult>> {
    const { locks } = this.#place;
    for (;;) {
      if (this.dead) return new Promise(() => {});
      signal.throwIfAborted();
      const handle = await this.#read(key);
      if (handle) return { outcome: 'cached', handle };
      if (!locks.has(key)) {
        locks.set(key, this);
        // Who has the lease on a key waits for the one on its content: only with that a result is made.
        const made = key.includes(':content:') ? this.#activity.lease() : () => {};
        const release = async () => {
          made();
          if (locks.get(key) === this) locks.delete(key);
          this.#place.wake();
        };
        return { outcome: 'leased', release };
      }
      await this.#place.wait(signal);
    }
  }

  async cache(key: string, { handle, contentKey }: KeyedHandle<CachedResult>): Promise<void> {
    if (this.dead) return;
    const until = this.#now() + this.ttlMs;
    if (contentKey !== key) this.#place.kept.set(key, { sameAs: contentKey });
    else this.#place.kept.set(key, { ...this.#codec.pack(handle.value), until });
  }

  clear(): void {}

  async #read(key: string): Promise<ResultHandle<CachedResult> | undefined> {
    const entry = this.#place.kept.get(key);
    if (!entry) return undefined;
    if ('sameAs' in entry) return this.#read(entry.sameAs);
    const { facts, bytes, until } = entry;
    const copy = Buffer.from(bytes);
    this.#place.copies.add(copy);
    const charged =
      until > this.#now() ? await this.#codec.unpack({ facts, bytes: copy }, textHash(key)) : undefined;
    if (!charged && this.#place.kept.get(key) === entry) this.#place.kept.delete(key);
    return charged && this.wrap(charged).handle();
  }
}
