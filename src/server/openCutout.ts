import type { Config } from '../config/readConfig.ts';
import { type Cutout, type CutoutParts, createCutout } from '../cutout/cutout.ts';
import { PROFILES } from '../cutout/qualityProfile.ts';
import { CachedSubjectSelection } from '../cutout/subjectSelection.ts';
import { unmetered } from '../cutout/unmetered.ts';
import type { ProbeLimits } from '../image/types.ts';
import type { Observer } from '../models/observer.ts';
import { assertImageThreads } from './images.ts';
import { type OpenedEngine, openEngine } from './openEngine.ts';

/** The use case over an opened network. */
export function cutoutOver(
  {
    engine,
    network,
    second,
    subjectTypes,
    selection,
  }: Pick<OpenedEngine, 'network' | 'second' | 'subjectTypes'> & Pick<CutoutParts, 'engine' | 'selection'>,
  profile: Config['cutout']['profile'],
  rest: Omit<CutoutParts, 'engine' | 'network' | 'second' | 'subjectTypes' | 'selection' | 'profile'>,
): Cutout {
  return createCutout({
    engine,
    network,
    second: second?.name,
    subjectTypes,
    selection,
    profile: PROFILES[profile],
    ...rest,
  });
}

interface OpenCutoutOptions {
  readonly limits: ProbeLimits;
  /** Images processed at a time; default: one more than network runs. */
  readonly jobs?: number | undefined;
  /** Fetches a missing network. */
  readonly pull: boolean;
  readonly observer: Observer;
  readonly signal: AbortSignal;
}

interface OpenedCutout {
  readonly cutout: Cutout;
  /** Images processed at a time. */
  readonly jobs: number;
  /** File of the prepared network. */
  readonly network: string;
  close(): Promise<void>;
}

/**
 * The use case without a server, for local files: no accounts, rate limits or downloads. Rejects with
 * UserError, ModelError or EngineError, and soon after an abort with the reason of `signal`.
 */
export async function openCutout(
  config: Pick<Config, 'engine' | 'cutout'>,
  { limits, pull, observer, signal, ...options }: OpenCutoutOptions,
): Promise<OpenedCutout> {
  // Files do not depend on the type of subject.
  const wanted = { ...config.engine, subjectTypes: 'off' } as const;
  const opened = await openEngine(wanted, PROFILES[config.cutout.profile], { pull, observer, signal });
  await assertImageThreads();
  const jobs = options.jobs ?? opened.threads.workers + 1;
  const selection =
    opened.selector && new CachedSubjectSelection(opened.selector, { ttlSeconds: 0, maxBytes: 0 });
  const rest = { ...unmetered(jobs), limits, timeout: 0 };
  return {
    cutout: cutoutOver({ ...opened, selection }, config.cutout.profile, rest),
    jobs,
    network: opened.network.path,
    close: () => opened.engine.close(0),
  };
}
