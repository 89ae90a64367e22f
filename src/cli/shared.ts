import { Keyv } from 'keyv';
import type { Session } from '../accounts/sessions.ts';
import type { Books } from '../billing/books.ts';
import type { Config } from '../config.ts';
import { type Kept, keptBytes, keptTravel } from '../cutout/kept.ts';
import type { Attempts } from '../limits/attempts.ts';
import { systemClock } from '../limits/clock.ts';
import type { ConcurrencyLimit } from '../limits/concurrency.ts';
import { MemoryAttempts } from '../limits/memoryAttempts.ts';
import { MemoryConcurrencyLimit } from '../limits/memoryConcurrency.ts';
import { MemoryRateLimit } from '../limits/memoryRate.ts';
import type { RateLimit } from '../limits/rate.ts';
import type { Logger } from '../ops/log.ts';
import { BoundedStore } from '../results/boundedStore.ts';
import { MemoryResultStore } from '../results/memoryStore.ts';
import { Results } from '../results/results.ts';
import { sharedSecret } from '../store/secretTable.ts';

/** What several nodes have in common beside the books. */
export interface Shared {
  readonly rate: RateLimit;
  readonly concurrency: ConcurrencyLimit;
  readonly attempts: Attempts;
  readonly results: Results<Kept>;
  readonly sessions: Keyv<Session>;
  /** Downloads that came to nothing, by account. */
  readonly fetchFailures: Attempts;
  /** Addresses that were permitted, while results are kept (`PermitParts`). */
  readonly permitted: Keyv<boolean> | undefined;
  close(): void;
}

/** About 10,000 addresses. */
const permittedBytes = 5e6;

/** In Redis where the configuration names one, else in the memory of this process. Throws UserError. */
export async function openShared(
  config: Config,
  logger: Logger,
  { ledger, database }: Pick<Books, 'ledger' | 'database'>,
): Promise<Shared> {
  const rateOptions = { megapixels: config.rateLimit, windowSeconds: 60 };
  const attemptRules = { failures: config.failedAttempts, windowSeconds: 60 };
  const fetchRules = { failures: config.fetchFailures, windowSeconds: 60 };
  const { keepSeconds, accountConcurrency, redisUrl: url } = config;
  const keeping = {
    keepSeconds,
    maxBytes: config.keepMegabytes * 1e6,
    onError: (error: unknown) => logger.error({ err: error }, 'results'),
  };
  if (url === undefined) {
    // The books' own, so that names outlive this process as the charges do.
    const contentKey = await sharedSecret(database, 'content');
    const results = new Results<Kept>(
      keepSeconds > 0 ? new MemoryResultStore({ ...keeping, bytesOf: keptBytes, contentKey }) : undefined,
    );
    return {
      rate: new MemoryRateLimit(rateOptions, systemClock),
      concurrency: new MemoryConcurrencyLimit(accountConcurrency),
      attempts: new MemoryAttempts(attemptRules),
      results,
      sessions: new Keyv<Session>(),
      fetchFailures: new MemoryAttempts(fetchRules),
      permitted:
        keepSeconds > 0
          ? new Keyv<boolean>({ store: new BoundedStore(permittedBytes, () => 0), ttl: keepSeconds * 1000 })
          : undefined,
      close: () => results.clear(),
    };
  }
  // Loaded only where it is used.
  const { openRedisParts } = await import('./redis.ts');
  return openRedisParts(
    { url, logger },
    {
      rateOptions,
      attemptRules,
      fetchRules,
      accountConcurrency,
      keeping: { ...keeping, ...keptTravel(ledger) },
    },
  );
}
