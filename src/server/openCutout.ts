import type { Config } from '../config/config.ts';
import { type Cutout, type CutoutParts, createCutout } from '../cutout/cutout.ts';
import { PROFILES } from '../cutout/profile.ts';
import { unmetered } from '../cutout/unmetered.ts';
import type { ProbeLimits } from '../image/types.ts';
import type { Observer } from '../models/observer.ts';
import { type OpenedEngine, openEngine } from './openEngine.ts';

/** The use case over an opened network. */
export function cutoutOver(
  {
    engine,
    network,
    subjectTypes,
  }: Pick<OpenedEngine, 'network' | 'subjectTypes'> & Pick<CutoutParts, 'engine'>,
  profile: Config['cutout']['profile'],
  rest: Omit<CutoutParts, 'engine' | 'network' | 'subjectTypes' | 'profile'>,
): Cutout {
  return createCutout({ engine, network, subjectTypes, profile: PROFILES[profile], ...rest });
}

export interface OpenCutoutOptions {
  readonly limits: ProbeLimits;
  /** Images at a time; one more than networks run when not given. */
  readonly jobs?: number | undefined;
  /** Fetches the network when it is not there. */
  readonly pull: boolean;
  readonly observer: Observer;
  readonly signal: AbortSignal;
}

export interface OpenedCutout {
  readonly cutout: Cutout;
  /** Images at a time. */
  readonly jobs: number;
  close(): Promise<void>;
}

/**
 * The part of a server that cuts out, for one's own files: no accounts, limits of calls or addresses. Rejects with
 * ModelError or EngineError, and soon after `signal` with its reason.
 */
export async function openCutout(
  config: Pick<Config, 'engine' | 'cutout'>,
  { limits, pull, observer, signal, ...options }: OpenCutoutOptions,
): Promise<OpenedCutout> {
  // Nothing that is written to a file depends on the kind of subject.
  const wanted = { ...config.engine, subjectTypes: 'off' } as const;
  const opened = await openEngine(wanted, { pull, observer, signal });
  const jobs = options.jobs ?? opened.threads.workers + 1;
  const rest = { ...unmetered(jobs), limits, timeout: 0 };
  return {
    cutout: cutoutOver(opened, config.cutout.profile, rest),
    jobs,
    close: () => opened.engine.close(0),
  };
}
