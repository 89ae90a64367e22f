import { insufficientCredits } from '../billing/creditCheck.ts';
import { type Reservation, ShortOfCredits } from '../billing/reservation.ts';
import { type Paid, paymentOf } from '../idempotency/sharedResult.ts';
import type { CachedResult } from './cachedResult.ts';
import type { PipelineCall, PipelineResult } from './pipeline.ts';
import type { Plan } from './plan.ts';

/**
 * Step 6: charges the finished work and returns the cacheable result. The charge itself:
 * billing/chargeStates.ts `settle`. Rejects with 402 if the reservation is gone and cannot be paid again, or
 * with the signal's reason; the caller then releases the reservation.
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
  // Recorded here, because each result is made once, and not where the charge is reported.
  telemetry.add({ payment: reservation.payment });
  return {
    value: { ...encoded, ...done, max: plan.max, charged, charge },
    payment: paymentOf(reservation),
  };
}
