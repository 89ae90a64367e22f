import sharp from 'sharp';
import type { Reservations } from '../../src/billing/types.ts';
import { Admission } from '../../src/cutout/admission.ts';
import type { CutoutResult } from '../../src/cutout/answer.ts';
import { type Cutout, createCutout } from '../../src/cutout/cutout.ts';
import { noDownloads } from '../../src/cutout/imageDownloads.ts';
import type { PipelineParts } from '../../src/cutout/pipeline.ts';
import { profiles } from '../../src/cutout/qualityProfile.ts';
import { type CutoutRequest, plainRequest } from '../../src/cutout/request.ts';
import type { CachedResult } from '../../src/cutout/result.ts';
import { Idempotency } from '../../src/idempotency/idempotency.ts';
import type { ResultStore } from '../../src/idempotency/resultStore.ts';
import { contractLimits } from '../../src/image/types.ts';
import type { Clock } from '../../src/limits/clock.ts';
import { InMemoryConcurrencyLimit } from '../../src/limits/concurrency.ts';
import { DurationEstimate } from '../../src/limits/durationEstimate.ts';
import { FairScheduler } from '../../src/limits/fairScheduler.ts';
import { InMemoryRateLimit } from '../../src/limits/inMemoryRate.ts';
import { MemoryBudget } from '../../src/limits/memoryBudget.ts';

/** A request for a small image of one colour, identified by its first pixel. */
export async function requestOf(
  [r, g, b]: readonly [number, number, number],
  size: CutoutRequest['size'],
): Promise<CutoutRequest> {
  const create = { width: 16, height: 12, channels: 3, background: { r, g, b } } as const;
  const bytes = await sharp({ create }).png().toBuffer();
  return { ...plainRequest, source: { kind: 'bytes', bytes }, size, format: 'png' };
}

/** Number of the network run that made a result. */
export const runNumberOf = ({ bytes }: CutoutResult): number => bytes.readUInt16LE(0);

/** Called when a run starts, with the image's first pixel; resolves with the run's number when it is done. */
export type Run = (
  pixel: readonly [r: number, g: number, b: number],
  signal: AbortSignal | undefined,
) => Promise<number>;

/** An engine whose runs are ended by a test; a result contains the number of its run (`runNumberOf`). */
const scriptedEngine = (run: Run): PipelineParts['engine'] => ({
  matte: async ({ data }, { width, height }, { signal } = {}) => {
    const [r = 0, g = 0, b = 0] = data;
    const number = await run([r, g, b], signal);
    data.set([number & 255, number >> 8]);
    const box = { left: 0, top: 0, width, height };
    const times = {
      runs: 1,
      uncertainty: 0,
      secondLook: 'none' as const,
      queueMs: 0,
      prepareMs: 0,
      inferMs: 0,
      subjectMs: 0,
      matteMs: 0,
    };
    return { width, height, box, foregroundPixels: width * height, opaque: true, ...times };
  },
  compose: () => Promise.reject(new Error('nothing is composed')),
  encodePng: async ({ data }) => Buffer.from(data.subarray(0, 2)),
});

export interface ScriptedCutout {
  readonly run: Run;
  readonly reservations: Reservations;
  readonly store: ResultStore<CachedResult>;
  readonly clock: Clock;
}

/** The use case as it ships, over a test's engine: no limits except credits, and no downloads. */
export function scriptedCutout({ run, reservations, store, clock }: ScriptedCutout): {
  readonly cutout: Cutout;
  readonly idempotency: Idempotency<CachedResult>;
} {
  const idempotency = new Idempotency<CachedResult>(store);
  const rate = new InMemoryRateLimit({ limit: 0, windowSeconds: 60 }, clock);
  const cutout = createCutout({
    subjectTypes: false,
    engine: scriptedEngine(run),
    network: { name: 'scripted', width: 8, height: 8 },
    profile: profiles.balanced,
    rate,
    admission: new Admission({
      rate,
      reservations,
      scheduler: new FairScheduler({ running: 100, waitMs: 0, memory: new MemoryBudget() }, clock.now),
      estimate: new DurationEstimate(),
    }),
    concurrency: new InMemoryConcurrencyLimit(0),
    idempotency,
    downloadsFor: noDownloads,
    precheck: () => Promise.reject(new Error('nothing is downloaded')),
    limits: contractLimits,
    timeout: 0,
  });
  return { cutout, idempotency };
}
