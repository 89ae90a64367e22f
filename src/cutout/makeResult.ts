import type { QuarterCredits } from '../billing/price.ts';
import type { Payment, Reservation } from '../billing/types.ts';
import type { ContentNames } from '../idempotency/idempotency.ts';
import type { Charged } from '../idempotency/sharedResult.ts';
import { assertFits } from '../image/encode.ts';
import type { ProbeLimits } from '../image/types.ts';
import type { Admission, AdmissionCall, Admitted } from './admission.ts';
import {
  type Decoded,
  Pipeline,
  type PipelineCall,
  type PipelineParts,
  type PipelineResult,
} from './pipeline.ts';
import { makePlans, type Plan, type Plans, tierToReserve } from './plan.ts';
import { type Loaded, probeInputs } from './probeInputs.ts';
import type { CutoutRequest } from './request.ts';
import type { CachedResult } from './result.ts';

export interface ResultParts extends PipelineParts {
  readonly admission: Admission;
  readonly limits: ProbeLimits;
  /** Called once for every charge that was made, also if it is refunded because nothing is sent. */
  readonly onCharge?: ((payment: Payment, charged: QuarterCredits) => void) | undefined;
}

/** The call for which a result is made; others may wait for it too. */
export interface ResultCall extends Pick<AdmissionCall, 'accountId' | 'deadline' | 'telemetry' | 'permit'> {
  readonly requestId: string;
}

/** Content whose result is made. */
interface ResultContent extends ContentNames {
  readonly loaded: Loaded;
  /** Aborts when the last of those who wait for the result leaves. */
  readonly signal: AbortSignal;
}

/**
 * Step 6: charges the finished work (`settle` of billing/settlement.ts). Rejects with 402 if the reservation is gone
 * and cannot be paid again, or with the signal's reason; the caller then releases it.
 */
async function charge(
  reservation: Reservation,
  plan: Plan,
  { encoded, ...rest }: PipelineResult,
  {
    signal,
    telemetry,
    onCharge,
  }: Omit<PipelineCall, 'accountId' | 'imageId' | 'watch'> & Pick<ResultParts, 'onCharge'>,
): Promise<Charged<CachedResult>> {
  signal.throwIfAborted();
  const { payment, ...settlement } = await telemetry.timed('settle', () =>
    reservation.settle(rest.uncertainty),
  );
  // Counted where the charge is made: the first client may have left, and after an interrupted answer another one reports
  // the same charge, which would then count twice.
  if (payment !== undefined) {
    onCharge?.(payment, settlement.charged);
    telemetry.add({ payment });
  }
  signal.throwIfAborted();
  const { stages } = telemetry;
  return { value: { ...encoded, ...rest, max: plan.max, stages, ...settlement }, chargeHandle: reservation };
}

/**
 * Decodes the image and reserves its price, in this order: an image that cannot be decoded leaves nothing in the ledger. Decodes
 * once more where the reserved size is not the one that was admitted.
 */
async function decodeAndReserve(
  pipeline: Pipeline,
  plans: Plans,
  admitted: Admitted,
  call: PipelineCall,
): Promise<{ readonly plan: Plan; readonly decoded: Decoded; readonly reservation: Reservation }> {
  const decoded = await pipeline.decode(admitted.plan, call);
  const reservation = await admitted.reserve();
  const plan = plans[reservation.tier];
  if (plan === admitted.plan) return { plan, decoded, reservation };
  return { plan, decoded: await pipeline.decode(plan, call), reservation };
}

/** Steps 3 to 6: makes a result from what was loaded, and charges it. */
export function createMakeResult(parts: ResultParts) {
  const { admission, onCharge } = parts;
  const pipeline = new Pipeline(parts);
  return async (
    request: CutoutRequest,
    call: ResultCall,
    { loaded, repeat, imageId, signal }: ResultContent,
  ): Promise<Charged<CachedResult>> => {
    const { accountId, requestId, deadline, telemetry, permit } = call;
    // 3. Plan.
    const inputs = await probeInputs(request, loaded, parts, telemetry);
    const plans = makePlans(request, inputs, parts);
    const size = tierToReserve(request, inputs.image.probe);
    const { format, geometry, result: planned } = plans[size === 'auto' ? 'preview' : size];
    // A result whose size is known and which no file of the format can hold is refused before anything is reserved.
    if (!geometry.crop) assertFits(format, planned);
    // 4. Admit. From here on everything that is acquired is settled or released, however this ends.
    const admitted = await admission.admit({
      accountId,
      permit,
      plans,
      reserve: { requestId, size, repeat },
      ready: async () => {
        if (plans.full.prompt) await parts.selection?.ready(signal);
      },
      deadline,
      signal,
      telemetry,
    });
    try {
      // 5. Pipeline.
      const work = { accountId, imageId, signal, telemetry, watch: admitted.watch };
      const { plan, decoded, reservation } = await decodeAndReserve(pipeline, plans, admitted, work);
      const result = await pipeline.cutOut(plan, decoded, work);
      // 6. Settle: only now is anything charged.
      const charged = await charge(reservation, plan, result, { signal, telemetry, onCharge });
      admitted.done(result);
      return charged;
    } finally {
      await admitted.end();
    }
  };
}
