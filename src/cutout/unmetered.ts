import { credits } from '../billing/price.ts';
import type { Reservations } from '../billing/types.ts';
import { Idempotency } from '../idempotency/idempotency.ts';
import { systemClock } from '../limits/clock.ts';
import { InMemoryConcurrencyLimit } from '../limits/concurrency.ts';
import { DurationEstimate } from '../limits/durationEstimate.ts';
import { FairScheduler } from '../limits/fairScheduler.ts';
import { InMemoryRateLimit } from '../limits/inMemoryRate.ts';
import { MemoryBudget } from '../limits/memoryBudget.ts';
import { Admission } from './admission.ts';
import type { CutoutParts } from './cutout.ts';
import { noDownloads } from './imageDownloads.ts';
import type { CachedResult } from './result.ts';

const nothing = credits(0);

const unmeteredReservations: Reservations = {
  quote: async (_accountId, { size }) => (size === 'auto' ? 'full' : size),
  reserve: async (_accountId, { size }) => ({
    id: 0,
    tier: size === 'auto' ? 'full' : size,
    payment: 'free',
    settle: async () => ({ charged: nothing, payment: undefined, charge: undefined }),
    isChargeValid: async () => true,
    deliver: async () => {},
    release: async () => {},
  }),
  addAnswer: async () => undefined,
};

/**
 * Creates the parts of a use case for local files (`cutout run`): nothing is charged, cached, limited or downloaded. At most
 * `running` images are processed at a time.
 */
export function unmetered(
  running: number,
): Pick<CutoutParts, 'rate' | 'admission' | 'concurrency' | 'idempotency' | 'downloadsFor' | 'precheck'> {
  const rate = new InMemoryRateLimit({ limit: 0, windowSeconds: 60 }, systemClock);
  const admission = new Admission({
    rate,
    reservations: unmeteredReservations,
    scheduler: new FairScheduler(
      { running, waitMs: Number.POSITIVE_INFINITY, memory: new MemoryBudget() },
      () => performance.now(),
    ),
    estimate: new DurationEstimate(),
  });
  return {
    rate,
    admission,
    concurrency: new InMemoryConcurrencyLimit(0),
    idempotency: new Idempotency<CachedResult>(undefined),
    downloadsFor: noDownloads,
    precheck: async () => {},
  };
}
