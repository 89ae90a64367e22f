import { insufficientCredits } from '../billing/creditCheck.ts';
import type { QuarterCredits } from '../billing/price.ts';
import { InsufficientCredits, type Payment, type Reservation } from '../billing/types.ts';
import type { ContentNames } from '../idempotency/idempotency.ts';
import type { Charged } from '../idempotency/sharedResult.ts';
import { assertFits } from '../image/encode.ts';
import type { ProbeLimits } from '../image/types.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { Admission } from './admission.ts';
import type { CachedResult } from './cachedResult.ts';
import type { ImageDownloads } from './imageDownloads.ts';
import type { Loaded } from './load.ts';
import { createPipeline, type PipelineCall, type PipelineParts, type PipelineResult } from './pipeline.ts';
import { makePlans, type Plan, tierToReserve } from './plan.ts';
import { probeInputs } from './probeInputs.ts';
import type { CutoutRequest } from './request.ts';

export interface ResultParts extends PipelineParts {
  readonly admission: Admission;
  readonly limits: ProbeLimits;
  /** Called once for every charge that was made, also if it is refunded because nothing is sent. */
  readonly onCharge?: ((payment: Payment, charged: QuarterCredits) => void) | undefined;
}

/** The call for which a result is made; others may wait for it too. */
export interface ResultCall {
  readonly accountId: string;
  readonly requestId: string;
  /** `performance.now()` of the deadline; absent: none. */
  readonly deadline?: number;
  readonly telemetry: RequestTelemetry;
}

/** Content whose result is made. */
export interface ResultContent extends ContentNames {
  readonly loaded: Loaded;
  /** Aborts when the last of those who wait for the result leaves. */
  readonly signal: AbortSignal;
}

/** Steps 3 to 6: makes a result from what was loaded, and charges it. */
export type MakeResult = (
  request: CutoutRequest,
  downloads: ImageDownloads,
  call: ResultCall,
  content: ResultContent,
) => Promise<Charged<CachedResult>>;

/**
 * Step 6: charges the finished work (billing/settlement.ts `settle`) and returns the cacheable result. Rejects
 * with 402 if the reservation is gone and cannot be paid again, or with the signal's reason; the caller then
 * releases the reservation.
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
  const { payment, ...settlement } = await telemetry
    .timed('settle', () => reservation.settle())
    .catch((error: unknown) => {
      throw error instanceof InsufficientCredits ? insufficientCredits(error.shortfall) : error;
    });
  // Counted where the charge is made: the first client may have left, and after an interrupted answer another one reports
  // the same charge, which would then count twice.
  if (payment !== undefined) {
    onCharge?.(payment, settlement.charged);
    telemetry.add({ payment });
  }
  signal.throwIfAborted();
  return { value: { ...encoded, ...rest, max: plan.max, ...settlement }, chargeHandle: reservation };
}

/** Refuses, before anything is reserved, a result whose size is known and which no file of the format can hold. */
function assertFormatFits({ format, geometry, result }: Plan): void {
  if (!geometry.crop) assertFits(format, result);
}

export function createMakeResult(parts: ResultParts): MakeResult {
  const { admission, onCharge } = parts;
  const pipeline = createPipeline(parts);
  return async (request, downloads, { accountId, requestId, deadline, telemetry }, content) => {
    const { loaded, repeat, imageId, signal } = content;
    // 3. Plan.
    const watch = await admission.begin(accountId);
    const inputs = await probeInputs(request, loaded, { ...parts, watch }, telemetry);
    const plans = makePlans(request, inputs, parts);
    // 4. Admit. From here on everything that is acquired is settled or released, however this ends.
    const size = tierToReserve(request, inputs.image.probe);
    assertFormatFits(plans[size === 'auto' ? 'preview' : size]);
    const admitted = await admission.admit({
      accountId,
      hasPermit: downloads.hasPermit,
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
      const call = { accountId, imageId, signal, telemetry, watch: admitted.watch };
      let { plan } = admitted;
      let decoded = await pipeline.decode(plan, call);
      const reservation = await admitted.reserve();
      if (plan !== plans[reservation.tier]) {
        plan = plans[reservation.tier];
        decoded = await pipeline.decode(plan, call);
      }
      const result = await pipeline.cutOut(plan, decoded, call);
      // 6. Settle: only now is anything charged.
      const charged = await charge(reservation, plan, result, { signal, telemetry, onCharge });
      admitted.done(result.stages, result);
      return charged;
    } finally {
      await admitted.end();
    }
  };
}
