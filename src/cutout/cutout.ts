import type { Idempotency } from '../idempotency/idempotency.ts';
import type { Ending } from '../idempotency/sharedResult.ts';
import type { ProbeLimits } from '../image/types.ts';
import { tooMany } from '../limits/refuse.ts';
import type { Admission } from './admission.ts';
import { answer, type CutoutResult } from './answer.ts';
import type { CachedResult } from './cachedResult.ts';
import type { OpenFetch } from './fetchImage.ts';
import { load } from './load.ts';
import { createPipeline, type PipelineCall, type PipelineParts } from './pipeline.ts';
import { makePlans, sizeToReserve } from './plan.ts';
import type { Precheck } from './precheck.ts';
import { probeInputs } from './probeInputs.ts';
import { publicError } from './publicError.ts';
import { type CutoutRequest, settingsOf } from './request.ts';
import { settle } from './settle.ts';

export type { CutoutResult, Ending };

export interface CutoutParts extends PipelineParts {
  readonly admission: Admission;
  readonly idempotency: Idempotency<CachedResult>;
  /** Downloads images by address. */
  readonly openFetch: OpenFetch;
  readonly precheck: Precheck;
  readonly limits: ProbeLimits;
}

interface CutoutCall extends PipelineCall {
  readonly accountId: string;
  readonly requestId: string;
  readonly idempotencyKey?: string | undefined;
  /** Aborted with an AppError: the client disconnected, or time is up. */
  readonly signal: AbortSignal;
  /** `performance.now()` of the deadline; absent: none. */
  readonly deadline?: number;
}

export type Cutout = (request: CutoutRequest, call: CutoutCall) => Promise<CutoutResult>;

/**
 * The use case: an image in, its subject out. Independent of HTTP. docs/architecture.md lists its steps ("One
 * request, one buffer"). Work is shared by all callers that wait for its result: every step gets the signal
 * that aborts when the last of them leaves.
 */
export function createCutout(parts: CutoutParts): Cutout {
  const { admission, idempotency, openFetch, precheck, limits } = parts;
  const pipeline = createPipeline(parts);
  return async (request, call) => {
    const { accountId, requestId, idempotencyKey, signal, deadline, telemetry } = call;
    const images = openFetch({
      accountId,
      telemetry,
      precheck: () => precheck(request, accountId),
      tooMany: async (detail, why) => tooMany(await admission.rate(accountId), detail, why),
    });
    try {
      const found = await idempotency.once({
        accountId,
        idempotencyKey,
        signal,
        // 1. Load, unless the Idempotency-Key is known. Images and settings name the result.
        load: (everyone) =>
          images.during(async () => {
            const sent = await load(request, images, limits, everyone);
            const name = await idempotency.name(sent.image, settingsOf(request), sent.background);
            return { sent, name };
          }),
        // 2. Find repeat: a result of that name is answered, one under way is waited for. Else it is made.
        make: ({ sent, name }, everyone) =>
          images.during(async () => {
            const making = { accountId, deadline, telemetry, signal: everyone };
            // 3. Plan.
            const inputs = await probeInputs(request, sent, limits, telemetry);
            const plans = makePlans(request, inputs, parts);
            // 4. Admit. From here on every way out settles or gives back.
            const size = sizeToReserve(request, inputs.image.probe);
            const reserve = { requestId, size, repeat: idempotency.repeatOf(name) };
            const asked = { ...making, entered: images.permitted, plans, reserve };
            return admission.admit(asked, async (plan, reservation) => {
              // 5. Pipeline.
              const done = await pipeline(plan, making);
              // 6. Settle: only now is anything charged.
              const paid = await settle(reservation, plan, done, making);
              return { ...paid, stages: done.stages };
            });
          }),
      });
      // 7. Answer.
      return await answer(found, { accountId, signal, telemetry, images, admission });
    } catch (error) {
      const answered = publicError(error, signal);
      await images.end(answered);
      throw answered;
    }
  };
}
