import type { Repeatable } from '../idempotency/chargedContent.ts';
import type { Paid } from '../idempotency/sharedResult.ts';
import type { ProbeLimits } from '../image/types.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { Admission } from './admission.ts';
import type { CachedResult } from './cachedResult.ts';
import type { ImageFetch } from './fetchImage.ts';
import type { Loaded } from './load.ts';
import { createPipeline, type PipelineParts } from './pipeline.ts';
import { makePlans, sizeToReserve } from './plan.ts';
import { probeInputs } from './probeInputs.ts';
import type { CutoutRequest } from './request.ts';
import { settle } from './settle.ts';

export interface ResultParts extends PipelineParts {
  readonly admission: Admission;
  readonly limits: ProbeLimits;
}

/** The call for which a result is made; others may wait for it too. */
export interface ResultCall {
  readonly accountId: string;
  readonly requestId: string;
  /** `performance.now()` of the deadline; absent: none. */
  readonly deadline?: number;
  readonly telemetry: RequestTelemetry;
}

/** `signal` aborts when the last of those who wait for the result leaves. */
type MakeResult = (
  loaded: Loaded,
  repeat: Repeatable | undefined,
  signal: AbortSignal,
) => Promise<Paid<CachedResult>>;

/** Steps 3 to 6: from what was loaded to a result that is charged. */
export function createResultMaker(parts: ResultParts) {
  const { admission, limits } = parts;
  const pipeline = createPipeline(parts);
  return (request: CutoutRequest, images: ImageFetch, call: ResultCall): MakeResult =>
    async (loaded, repeat, signal) => {
      const { accountId, requestId, deadline, telemetry } = call;
      const endUse = images.use();
      try {
        // 3. Plan.
        const inputs = await probeInputs(request, loaded, limits, telemetry);
        const plans = makePlans(request, inputs, parts);
        // 4. Admit. From here on every way out settles or gives back.
        const size = sizeToReserve(request, inputs.image.probe);
        const reserve = { requestId, size, repeat };
        const { hasPlace } = images;
        const asked = { accountId, hasPlace, plans, reserve, deadline, signal, telemetry };
        const admitted = await admission.admit(asked);
        try {
          // 5. Pipeline.
          const { plan, reservation } = admitted;
          const result = await pipeline(plan, { signal, telemetry });
          // 6. Settle: only now is anything charged.
          const paid = await settle(reservation, plan, result, { signal, telemetry });
          admitted.done(result.stages);
          return paid;
        } finally {
          await admitted.end();
        }
      } finally {
        await endUse();
      }
    };
}
