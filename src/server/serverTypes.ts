import type { Provider } from '../accounts/oidc.ts';
import type { ServedStores } from '../billing/stores.ts';
import type { PurchaseOptions } from '../billing/stripeCheckout.ts';
import type { CachedResult } from '../cutout/cachedResult.ts';
import type { Cutout } from '../cutout/cutout.ts';
import type { DownloadOptions } from '../fetch/download.ts';
import type { HttpServer, ListenOptions } from '../http/server.ts';
import type { Idempotency } from '../idempotency/idempotency.ts';
import type { Improve } from '../improve/improve.ts';
import type { Clock } from '../limits/clock.ts';
import type { DownloadLimit } from '../limits/downloads.ts';
import type { DurationEstimate } from '../limits/durationEstimate.ts';
import type { FairScheduler } from '../limits/fairScheduler.ts';
import type { MemoryBounds, MemoryBudget } from '../limits/memoryBudget.ts';
import type { Observer } from '../models/observer.ts';
import type { Health } from '../ops/health.ts';
import type { Log } from '../ops/log.ts';
import type { Recorder } from '../ops/record.ts';
import type { OpenedConsole } from './openConsole.ts';
import type { OpenedEngine } from './openEngine.ts';
import type { Observation } from './openObservation.ts';

export interface StartOptions {
  readonly log: Log;
  readonly health: Health;
  /** Fetches missing networks. */
  readonly pull: boolean;
  /** Receives the progress of fetching and preparing the network. */
  readonly observer: Observer;
  /** Aborts the start. */
  readonly signal: AbortSignal;
  /** Called once, when image libraries hold more than half of the threads for pixels for longer than they may. */
  readonly onStuck?: () => void;
}

/** Replacements for the outside world, for tests; everything else comes from the configuration. */
export interface Overrides {
  /** Replaces the configured engine. */
  readonly engine?: OpenedEngine | Promise<OpenedEngine>;
  /** Replaces the clocks of this machine. */
  readonly clock?: Clock;
  /** Replaces name resolution, addresses and time limits of downloads. */
  readonly download?: Partial<DownloadOptions>;
  readonly providers?: readonly Provider[] | undefined;
  /** Replaces Stripe's server. */
  readonly stripe?: PurchaseOptions['api'];
  /** Called for every request, in addition to the log. */
  readonly recorders?: readonly Recorder[];
  /** Concurrent requests; default: two more than network runs. */
  readonly running?: number;
  /** Replaces the estimate of durations. */
  readonly estimate?: DurationEstimate | undefined;
  /** Replaces the memory budget derived from the process' limit. */
  readonly memory?: MemoryBounds | undefined;
  /** Time limits for clients to send and to read. */
  readonly connectionTimeouts?: Pick<ListenOptions, 'stallMs' | 'headMs'>;
  /** Wraps or replaces the use case. */
  readonly wrapCutout?: (cutout: Cutout) => Cutout;
}

/** A server that listens on its port: /health answers at once, images are accepted when it is ready. */
export interface Server {
  readonly http: HttpServer;
  readonly stores: ServedStores;
  readonly improve: Improve;
  readonly idempotency: Idempotency<CachedResult>;
  readonly scheduler: FairScheduler;
  readonly memory: MemoryBudget;
  readonly downloads: DownloadLimit;
  readonly console: OpenedConsole;
  readonly observation: Observation;
  /**
   * Waits for the network. Rejects with ModelError, EngineError or UserError, or with the reason of the
   * signal.
   */
  ready(): Promise<OpenedEngine>;
  /**
   * Accepts no more connections, finishes pending requests within `graceMs` milliseconds and closes
   * everything. True if all requests were answered in time.
   */
  close(graceMs: number): Promise<boolean>;
}
