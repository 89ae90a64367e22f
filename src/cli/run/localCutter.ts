import type { Config } from '../../config/readConfig.ts';
import { type CutoutRequest, plainRequest } from '../../cutout/request.ts';
import type { ProbeLimits } from '../../image/types.ts';
import { RequestTelemetry } from '../../ops/telemetry.ts';
import { openCutout } from '../../server/openCutout.ts';
import { type Output, withProgress } from '../modelsProgress.ts';
import type { Cutter, Wanted } from './cutter.ts';

interface LocalOptions extends Wanted {
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
  { size, lossless, mask, prompt, limits, jobs: wanted, pull, err, signal }: LocalOptions,
): Promise<Cutter> {
  const opened = await withProgress(err, config.engine.model, (observer) =>
    openCutout(config, { limits, jobs: wanted, pull, observer, signal }),
  );
  return {
    jobs: opened.jobs,
    async cut(bytes, format, stop) {
      const source = { kind: 'bytes', bytes } as const;
      const request: CutoutRequest = {
        ...plainRequest,
        source,
        size,
        format,
        lossless: lossless && format === 'webp',
        typeLevel: 'none',
        ...(mask && { mask: { kind: 'bytes', bytes: mask } }),
        ...(prompt && { prompt }),
      };
      const telemetry = new RequestTelemetry();
      const caller = { accountId: 'local', requestId: 'run', signal: stop, telemetry };
      return { ...(await opened.cutout(request, caller)), creditsCharged: 0 };
    },
    close: opened.close,
  };
}
