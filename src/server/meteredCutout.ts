import { createCreditCheck } from '../billing/creditCheck.ts';
import type { Ledger } from '../billing/ledger.ts';
import { toCredits } from '../billing/price.ts';
import type { Config } from '../config/readConfig.ts';
import { Admission } from '../cutout/admission.ts';
import type { Cutout } from '../cutout/cutout.ts';
import type { DownloadsFor } from '../cutout/imageDownloads.ts';
import { createPermitFor } from '../cutout/permit.ts';
import { createPrecheck } from '../cutout/precheck.ts';
import { PROFILES } from '../cutout/qualityProfile.ts';
import { typicalPreview } from '../cutout/resourceEstimate.ts';
import { CachedSubjectSelection } from '../cutout/subjectSelection.ts';
import { IdleUnloadEngine } from '../engine/idleUnload.ts';
import type { Selector } from '../engine/selector.ts';
import type { ProbeLimits } from '../image/types.ts';
import { DurationEstimate } from '../limits/durationEstimate.ts';
import type { FairScheduler } from '../limits/fairScheduler.ts';
import type { PixelJobs } from '../limits/pixelJobs.ts';
import type { Logger } from '../ops/log.ts';
import type { Metrics } from '../ops/metrics.ts';
import { cutoutOver } from './openCutout.ts';
import type { OpenedEngine } from './openEngine.ts';
import { billingOf } from './options.ts';
import type { SharedState } from './sharedState.ts';
import { embeddingBytes } from './sizeMemoryBudget.ts';

interface MeteredCutoutParts {
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
  readonly ledger: Ledger;
  readonly shared: SharedState;
  readonly scheduler: FairScheduler;
  readonly pixelJobs: PixelJobs;
  readonly downloadsFor: DownloadsFor;
  readonly limits: ProbeLimits;
  /** Estimated durations; default: learnt from the warm-up and from completed work. */
  readonly estimate: DurationEstimate | undefined;
}

interface MeteredCutout {
  readonly cutout: Cutout;
  /** False while an unloaded network cannot be loaded again. */
  readonly networkUsable: () => boolean;
  /** Stops the timer that unloads an idle network. */
  readonly stop: () => void;
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

/** The use case of a server over its opened network: with limits, charges and downloads. */
export function meteredCutout(
  opened: OpenedEngine,
  config: Pick<Config, 'engine' | 'cutout' | 'billing' | 'http'>,
  parts: MeteredCutoutParts,
): MeteredCutout {
  const { ledger, shared, scheduler, pixelJobs, downloadsFor, limits } = parts;
  const { network, info } = opened;
  const { profile } = config.cutout;
  const { timeout } = config.http;
  const warmUp = info.warmUpMs / ((network.width * network.height) / 1e6);
  const estimate = parts.estimate ?? new DurationEstimate(typicalPreview(PROFILES[profile], network), warmUp);
  const { rate, concurrency, idempotency, permitted } = shared;
  const admission = new Admission({ rate, reservations: ledger, scheduler, estimate, pixelJobs });
  const { prices } = billingOf(config.billing, timeout);
  const checkCredit = createCreditCheck(ledger, prices);
  const precheck = createPrecheck({ rate, checkCredit, permitted });
  const idle = idleUnloading(opened, config.engine.idleUnload, parts);
  const { selector } = opened;
  const selection =
    selector &&
    new CachedSubjectSelection(idle ? held(selector, idle) : selector, {
      ttlSeconds: config.cutout.resultTtlSeconds,
      maxBytes: embeddingBytes(config.cutout),
    });
  return {
    cutout: cutoutOver({ ...opened, selection, engine: idle ?? opened.engine }, profile, {
      rate,
      admission,
      permitFor: createPermitFor({ rate, concurrency }),
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
