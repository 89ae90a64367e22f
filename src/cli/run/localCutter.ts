import type { Config } from '../../config/readConfig.ts';
import { type CutoutRequest, plainRequest } from '../../cutout/request.ts';
import type { ProbeLimits } from '../../image/types.ts';
import { RequestTelemetry } from '../../ops/telemetry.ts';
import { openCutout } from '../../server/openCutout.ts';
import { type Output, progressOn } from '../modelsProgress.ts';
import type { Cutter, Wanted } from './cutter.ts';
import { promptOf } from './cutter.ts';

interface LocalOptions extends Pick<CutoutRequest, 'size'>, Omit<Wanted, 'size'> {
  readonly limits: ProbeLimits;
  readonly jobs?: number | undefined;
  /** Fetches a missing network. */
  readonly pull: boolean;
  readonly err: Output;
  readonly signal: AbortSignal;
}

/** Cuts out in this process, without accounts and limits. Rejects with ModelError or EngineError. */
export async function openLocalCutter(
  config: Config,
  { size, lossless, mask, points, box, limits, jobs: wanted, pull, err, signal }: LocalOptions,
): Promise<Cutter> {
  const prompt = promptOf(points, box);
  const observer = progressOn(err, config.engine.model);
  const opened = await openCutout(config, { limits, jobs: wanted, pull, observer, signal }).finally(() =>
    observer.done(),
  );
  return {
    jobs: opened.jobs,
    async cut(bytes, format, stop) {
      const source = { kind: 'bytes', bytes } as const;
      const { bytes: result, contentType } = await opened.cutout(
        {
          ...plainRequest,
          source,
          size,
          format,
          lossless: lossless && format === 'webp',
          typeLevel: 'none',
          ...(mask && { mask: { kind: 'bytes', bytes: mask } }),
          ...(prompt && { prompt }),
        },
        { accountId: 'local', requestId: 'run', signal: stop, telemetry: new RequestTelemetry() },
      );
      return { bytes: result, contentType, creditsCharged: 0 };
    },
    close: opened.close,
  };
}
