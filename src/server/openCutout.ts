import type { Ledger } from '../billing/ledger.ts';
import { toCredits } from '../billing/price.ts';
import type { Config } from '../config/readConfig.ts';
import { Admission } from '../cutout/admission.ts';
import { createCutout } from '../cutout/cutout.ts';
import { createPrecheck } from '../cutout/precheck.ts';
import { profiles } from '../cutout/qualityProfile.ts';
import { typicalPreview } from '../cutout/resourceEstimate.ts';
import { SubjectSelection } from '../cutout/subjectSelection.ts';
import { unmetered } from '../cutout/unmetered.ts';
import { IdleUnloadEngine } from '../engine/idleUnload.ts';
import type { Selector } from '../engine/selector.ts';
import type { ProbeLimits } from '../image/types.ts';
import { DurationEstimate } from '../limits/durationEstimate.ts';
import type { Logger } from '../ops/log.ts';
import type { Metrics } from '../ops/metrics.ts';
import { assertImageThreads } from './images.ts';
import { type OpenedEngine, openEngine } from './openEngine.ts';
import { embeddingBytes, type Limits } from './openLimits.ts';
import type { FetchOptions } from './openNetwork.ts';
import type { SharedState } from './openSharedState.ts';

interface OpenCutoutOptions extends FetchOptions {
  readonly limits: ProbeLimits;
  /** Images processed at a time; default: one more than network runs. */
  readonly jobs?: number | undefined;
}

/**
 * The use case without a server, for local files: no accounts, rate limits or downloads. `jobs`: images processed at a time.
 * Rejects with UserError, ModelError or EngineError, and soon after an abort with the reason of `signal`.
 */
export async function openCutout(
  config: Pick<Config, 'engine' | 'cutout' | 'limits'>,
  { limits, pull, observer, signal, ...options }: OpenCutoutOptions,
) {
  // Files do not depend on the type of subject.
  const wanted = { ...config.engine, subjectTypes: 'off' } as const;
  const opened = await openEngine(wanted, { pull, memory: config.limits.memory, observer, signal });
  // Nobody waits for readiness as at a server: all images get what may be fetched.
  if (pull) await opened.second?.fetch();
  await assertImageThreads();
  const jobs = options.jobs ?? opened.threads.workers + 1;
  const selection = opened.selector && new SubjectSelection(opened.selector, { ttlSeconds: 0, maxBytes: 0 });
  const profile = profiles[config.cutout.profile];
  return {
    cutout: createCutout({ ...opened, ...unmetered(jobs), selection, profile, limits, timeout: 0 }),
    jobs,
    close: () => opened.engine.close(0),
  };
}

interface MeteredCutoutParts extends Pick<Limits, 'scheduler' | 'pixelJobs' | 'downloadsFor'> {
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
  readonly ledger: Ledger;
  readonly shared: SharedState;
  readonly limits: ProbeLimits;
  /** Estimated durations; default: learnt from the warm-up and from completed work. */
  readonly estimate: DurationEstimate | undefined;
}

/** Unloads the network after `CUTOUT_IDLE_UNLOAD` seconds without work; undefined if it stays loaded. */
function idleUnloading(
  { engine, network, selector, reload }: OpenedEngine,
  idleUnload: number,
  { logger, metrics }: Pick<MeteredCutoutParts, 'logger' | 'metrics'>,
): IdleUnloadEngine | undefined {
  if (idleUnload === 0) return undefined;
  return new IdleUnloadEngine(engine, {
    afterMs: idleUnload * 1000,
    load: reload,
    onUnload: () => selector?.onUnloaded(),
    onChange: (what, ms) => {
      logger.info({ network: network.name, ms: Math.round(ms) }, `network ${what}`);
      if (what === 'loaded') metrics?.networkLoaded(ms);
      else metrics?.networkUnloaded();
    },
  });
}

/** The networks of points and boxes, which stay loaded while they work. */
const held = (selector: Selector, idle: IdleUnloadEngine): Selector => ({
  available: () => selector.available(),
  ready: (signal) => idle.during(() => selector.ready(signal)),
  embed: (...call) => idle.during(() => selector.embed(...call)),
  select: (...call) => idle.during(() => selector.select(...call)),
});

/**
 * Creates the use case of a server over its opened network: with limits, charges and downloads. `networkUsable`: false while an
 * unloaded network cannot be loaded again; `stop` ends the timer that unloads an idle one, and forgets encoded images.
 */
export function openMeteredCutout(
  opened: OpenedEngine,
  config: Pick<Config, 'engine' | 'cutout' | 'http'>,
  parts: MeteredCutoutParts,
) {
  const { ledger, shared, scheduler, pixelJobs, downloadsFor, limits } = parts;
  const { network, info } = opened;
  const profile = profiles[config.cutout.profile];
  const { timeout } = config.http;
  const warmUp = info.warmUpMs / ((network.width * network.height) / 1e6);
  const estimate = parts.estimate ?? new DurationEstimate(typicalPreview(profile, network), warmUp);
  const { rate, concurrency, idempotency, permitted } = shared;
  const admission = new Admission({ rate, reservations: ledger, scheduler, estimate, pixelJobs });
  const precheck = createPrecheck({ rate, reservations: ledger, permitted });
  const idle = idleUnloading(opened, config.engine.idleUnload, parts);
  const { selector } = opened;
  const selection =
    selector &&
    new SubjectSelection(idle ? held(selector, idle) : selector, {
      ttlSeconds: config.cutout.resultTtlSeconds,
      maxBytes: embeddingBytes(config.cutout),
    });
  return {
    cutout: createCutout({
      ...opened,
      selection,
      engine: idle ?? opened.engine,
      profile,
      rate,
      admission,
      concurrency,
      idempotency,
      downloadsFor,
      precheck,
      limits,
      timeout,
      onCharge: (payment, charged) => parts.metrics?.charged(payment, toCredits(charged)),
    }),
    networkUsable: () => idle?.isUsable ?? true,
    stop: () => {
      idle?.stop();
      selection?.clear();
    },
  };
}
