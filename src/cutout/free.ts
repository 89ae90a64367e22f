import { credits } from '../billing/price.ts';
import type { Reservations } from '../billing/reservation.ts';
import { Admission } from '../limits/admission.ts';
import { systemClock } from '../limits/clock.ts';
import { WorkEstimate } from '../limits/estimate.ts';
import { MemoryBudget } from '../limits/memory.ts';
import { MemoryConcurrencyLimit } from '../limits/memoryConcurrency.ts';
import { MemoryRateLimit } from '../limits/memoryRate.ts';
import { Results } from '../results/results.ts';
import type { CutoutParts } from './cutout.ts';
import { noFetch } from './fetchImage.ts';
import { createGates } from './gates.ts';
import type { Kept } from './kept.ts';

const nothing = credits(0);

const freeReservations: Reservations = {
  reserve: async (_accountId, { size }) => ({
    outcome: 'reserved',
    reservation: {
      id: 0,
      tier: size === 'auto' ? 'full' : size,
      payment: 'free',
      settle: async () => ({ charged: nothing, charge: undefined }),
      stands: async () => true,
      deliver: async () => {},
      release: async () => {},
    },
  }),
  answerWith: async () => undefined,
};

/**
 * For work that nobody pays for, that is never asked for twice and names no addresses: whoever runs the program on their own files.
 * At most `running` pictures are worked on at a time.
 */
export function withoutBooks(
  running: number,
): Pick<CutoutParts, 'gates' | 'results' | 'openFetch' | 'permit'> {
  const gates = createGates({
    rate: new MemoryRateLimit({ megapixels: 0, windowSeconds: 60 }, systemClock),
    concurrency: new MemoryConcurrencyLimit(0),
    reservations: freeReservations,
    admission: new Admission({ running, waitMs: Number.POSITIVE_INFINITY, memory: new MemoryBudget() }, () =>
      performance.now(),
    ),
    estimate: new WorkEstimate(),
  });
  const results = new Results<Kept>(undefined);
  return { gates, results, openFetch: noFetch, permit: (_, accountId) => gates.enter(accountId) };
}
