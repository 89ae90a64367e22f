import { credits } from '../billing/price.ts';
import type { Reservations } from '../billing/reservation.ts';
import { Admission } from '../limits/admission.ts';
import { ConcurrencyLimit } from '../limits/concurrency.ts';
import { WorkEstimate } from '../limits/estimate.ts';
import { MemoryBudget } from '../limits/memory.ts';
import { RateLimit } from '../limits/rate.ts';
import { Results } from '../results/results.ts';
import type { CutoutParts, Kept } from './cutout.ts';
import { createGates } from './gates.ts';

const nothing = credits(0);

const freeReservations: Reservations = {
  reserve: async (_accountId, { size }) => ({
    outcome: 'reserved',
    reservation: {
      id: 0,
      tier: size === 'auto' ? 'full' : size,
      payment: 'free',
      charge: nothing,
      settle: async () => nothing,
      delivered: async () => {},
      release: async () => {},
    },
  }),
};

/**
 * For work that nobody pays for and that is never asked for twice: whoever runs the program on their own files.
 * At most `running` pictures are worked on at a time.
 */
export function withoutBooks(running: number): Pick<CutoutParts, 'gates' | 'results'> {
  const gates = createGates({
    rate: new RateLimit({ megapixels: 0, windowSeconds: 60 }, Date.now),
    concurrency: new ConcurrencyLimit(0),
    reservations: freeReservations,
    admission: new Admission({ running, waitMs: Number.POSITIVE_INFINITY, memory: new MemoryBudget() }, () =>
      performance.now(),
    ),
    estimate: new WorkEstimate(),
  });
  const results = new Results<Kept>({ keepSeconds: 0, maxBytes: 0, bytesOf: () => 0, onError: () => {} });
  return { gates, results };
}
