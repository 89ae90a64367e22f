import { Keyv } from 'keyv';
import type { Session } from '../accounts/sessions.ts';
import type { Stores } from '../billing/stores.ts';
import type { Config } from '../config/readConfig.ts';
import type { CachedResult } from '../cutout/result.ts';
import { BoundedStore } from '../idempotency/boundedStore.ts';
import { cachedResultBytes, cachedResultCodec } from '../idempotency/codec.ts';
import { Idempotency } from '../idempotency/idempotency.ts';
import { InMemoryResultStore } from '../idempotency/inMemoryStore.ts';
import { Attempts, mostSources } from '../limits/attempts.ts';
import { type Clock, systemClock } from '../limits/clock.ts';
import { type ConcurrencyLimit, InMemoryConcurrencyLimit } from '../limits/concurrency.ts';
import { InMemoryRateLimit } from '../limits/inMemoryRate.ts';
import type { RateLimit } from '../limits/rate.ts';
import type { Logger } from '../ops/log.ts';
import { sharedSecret } from '../store/secretTable.ts';
import type { StateRules } from './redisState.ts';

/** State that nodes share beside the database: limits, cached results and sessions. In memory for a single node. */
export interface SharedState {
  readonly rate: RateLimit;
  readonly concurrency: ConcurrencyLimit;
  readonly attempts: Attempts;
  readonly idempotency: Idempotency<CachedResult>;
  readonly sessions: Keyv<Session>;
  /** Failed downloads by account. */
  readonly fetchFailures: Attempts;
  /** Addresses that passed the precheck (src/cutout/precheck.ts), while results are kept. */
  readonly permitted: Keyv<boolean> | undefined;
  /** False while Redis cannot be reached or refuses writes, without which no image is processed. */
  isReachable(): boolean;
  close(): void;
}

/** Bytes of the addresses that passed the precheck: about 10,000 of them. */
const permittedBytes = 5e6;

/** Opens the state in Redis if one is configured, else in the memory of this process. Throws UserError. */
export async function openSharedState(
  config: Pick<Config, 'cutout' | 'limits' | 'http' | 'fetch' | 'redis'>,
  logger: Logger,
  { ledger, database }: Pick<Stores, 'ledger' | 'database'>,
  clock: Clock = systemClock,
): Promise<SharedState> {
  const { url } = config.redis;
  const { resultTtlSeconds: ttlSeconds, cacheMegabytes } = config.cutout;
  const rules: StateRules = {
    rate: { limit: config.limits.rate, windowSeconds: 60 },
    accountConcurrency: config.limits.accountConcurrency,
    attempts: { limit: config.http.failedAttempts, windowSeconds: 60 },
    fetchFailures: { limit: config.fetch.failures, windowSeconds: 60 },
    results: {
      ttlSeconds,
      maxBytes: cacheMegabytes * 1e6,
      // In the database, so that all its servers name contents alike, and as long as it remembers charges.
      contentKey: await sharedSecret(database, 'content'),
      onError: (error) => logger.error({ err: error }, 'results'),
    },
  };
  if (url !== undefined) {
    // Loaded only if used.
    const { openRedisState } = await import('./redisState.ts');
    return openRedisState({ url, logger }, rules, cachedResultCodec<CachedResult>(ledger));
  }
  const cached = ttlSeconds > 0;
  const idempotency = new Idempotency(
    cached
      ? new InMemoryResultStore<CachedResult>({ ...rules.results, bytesOf: cachedResultBytes })
      : undefined,
  );
  return {
    rate: new InMemoryRateLimit(rules.rate, clock),
    concurrency: new InMemoryConcurrencyLimit(rules.accountConcurrency),
    attempts: new Attempts(new InMemoryRateLimit(rules.attempts, clock, mostSources)),
    idempotency,
    sessions: new Keyv<Session>(),
    fetchFailures: new Attempts(new InMemoryRateLimit(rules.fetchFailures, clock, mostSources)),
    permitted: cached
      ? new Keyv<boolean>({ store: new BoundedStore(permittedBytes, () => 0, ttlSeconds * 1000) })
      : undefined,
    isReachable: () => true,
    close: () => idempotency.clear(),
  };
}
