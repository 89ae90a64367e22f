import { insufficientCredits } from '../billing/creditCheck.ts';
import { type Reservation, ShortOfCredits } from '../billing/reservation.ts';
import { type Paid, paymentOf } from '../idempotency/sharedResult.ts';
import type { CachedResult } from './cachedResult.ts';
import type { PipelineCall, PipelineResult } from './pipeline.ts';
import type { Plan } from './plan.ts';

/**
 * Step 6: charges work that is done, and gives the result as it is cached. Rejects with 402 where what was reserved is gone
 * and cannot be paid any more, and with the signal's reason: an error costs nothing, however long that took, so where
 * nobody waits any more the caller releases the reservation.
 */
export async function settle(
  reservation: Reservation,
  plan: Plan,
  { encoded, ...done }: PipelineResult,
  { signal, telemetry }: PipelineCall,
): Promise<Paid<CachedResult>> {
  signal.throwIfAborted();
  const { charged, charge } = await telemetry
    .timed('settle', () => reservation.settle())
    .catch((error: unknown) => {
      throw error instanceof ShortOfCredits ? insufficientCredits(error.shortfall) : error;
    });
  signal.throwIfAborted();
  // Here and not where the charge is reported: each result is made once.
  telemetry.add({ payment: reservation.payment });
  return {
    value: { ...encoded, ...done, max: plan.max, charged, charge },
    payment: paymentOf(reservation),
  };
}
