import { Keyv, KeyvBridgeAdapter } from 'keyv';
import type { Session } from '../accounts/sessions.ts';
import type { CachedResult } from '../cutout/result.ts';
import { Idempotency } from '../idempotency/idempotency.ts';
import { RedisResultStore, type RedisStoreOptions } from '../idempotency/redisStore.ts';
import type { ResultStoreOptions } from '../idempotency/resultStore.ts';
import { Attempts, mostSources } from '../limits/attempts.ts';
import { systemClock } from '../limits/clock.ts';
import { InMemoryRateLimit } from '../limits/inMemoryRate.ts';
import type { RateOptions } from '../limits/rate.ts';
import { RedisConcurrencyLimit } from '../limits/redisConcurrency.ts';
import { RedisRateLimit } from '../limits/redisRate.ts';
import type { Logger } from '../ops/log.ts';
import { Redis } from '../store/redis.ts';
import { RedisKeyv } from '../store/redisKeyv.ts';

/** The settings of state that nodes share, wherever it is. */
export interface StateRules {
  readonly rate: RateOptions;
  /** 0: no limit. */
  readonly accountConcurrency: number;
  readonly attempts: RateOptions;
  readonly fetchFailures: RateOptions;
  /** `ttlSeconds` 0: nothing is cached. */
  readonly results: ResultStoreOptions;
}

/** Opens state shared by all nodes, in Redis (`SharedState`). Throws UserError if it cannot be reached. */
export async function openRedisState(
  { url, logger }: { readonly url: string; readonly logger: Logger },
  { rate, accountConcurrency, attempts, fetchFailures, results }: StateRules,
  codec: Pick<RedisStoreOptions<CachedResult>, 'pack' | 'unpack'>,
) {
  const redis = await Redis.open(
    {
      url,
      onChange: (lost) =>
        lost ? logger.error({ err: lost }, 'redis: cannot be used') : logger.info('redis: can be used again'),
    },
    (message) => logger.warn(message),
  );
  // keyv throws errors of its store only where nobody listens to its event `error`.
  const keyv = <T>(prefix: string, ttl?: number) =>
    new Keyv<T>({
      store: new KeyvBridgeAdapter(new RedisKeyv(redis, prefix)),
      ...(ttl !== undefined && { ttl }),
    });
  const attemptsOf = (rules: RateOptions) =>
    new Attempts(
      new InMemoryRateLimit(rules, systemClock, mostSources),
      new RedisRateLimit(redis, rules, 'failures'),
    );
  const cached = results.ttlSeconds > 0;
  return {
    rate: new RedisRateLimit(redis, rate),
    concurrency: new RedisConcurrencyLimit(redis, accountConcurrency),
    attempts: attemptsOf(attempts),
    idempotency: new Idempotency(cached ? new RedisResultStore(redis, { ...results, ...codec }) : undefined),
    sessions: keyv<Session>('cutout:session:'),
    fetchFailures: attemptsOf(fetchFailures),
    permitted: cached ? keyv<boolean>('cutout:permitted:', results.ttlSeconds * 1000) : undefined,
    isReachable: () => redis.isReachable,
    close: () => redis.close(),
  };
}
