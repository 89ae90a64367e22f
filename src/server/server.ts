import type { Provider } from '../accounts/oidc.ts';
import type { PurchaseOptions } from '../billing/purchases.ts';
import type { ServedStores } from '../billing/stores.ts';
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
import type { MemoryBounds, MemoryBudget } from '../limits/memory.ts';
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
  /** Fetches networks that are not there. */
  readonly pull: boolean;
  /** Hears how the network is fetched and prepared. */
  readonly observer: Observer;
  /** Gives up the start. */
  readonly signal: AbortSignal;
}

/** What stands in for the world outside; everything else comes through the configuration. */
export interface Overrides {
  /** In place of the one configured. */
  readonly engine?: OpenedEngine | Promise<OpenedEngine>;
  /** In place of the clocks of this machine. */
  readonly clock?: Clock;
  /** Names, addresses and times of downloads. */
  readonly download?: Partial<DownloadOptions>;
  readonly providers?: readonly Provider[] | undefined;
  /** Another server than Stripe's. */
  readonly stripe?: PurchaseOptions['api'];
  /** Hear of every request beside the log. */
  readonly recorders?: readonly Recorder[];
  /** Requests worked on at a time; two more than networks run when not given. */
  readonly running?: number;
  /** How long work takes. */
  readonly estimate?: DurationEstimate | undefined;
  /** Memory of requests, in place of what the limit of the process leaves. */
  readonly memory?: MemoryBounds | undefined;
  /** How long clients may take to send and to read. */
  readonly connectionTimeouts?: Pick<ListenOptions, 'stallMs' | 'headMs'>;
  /** Put around the use case, or in its place. */
  readonly wrapCutout?: (cutout: Cutout) => Cutout;
}

/** A server that answers on its port: /health at once, images once it is ready. */
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
   * Waits for the network; from then on images are worked on. Rejects with ModelError, EngineError or UserError, or with
   * the reason of the signal.
   */
  ready(): Promise<OpenedEngine>;
  /**
   * Takes no more connections, ends what is under way within `graceMs` and closes everything. True when all requests were
   * answered in time.
   */
  close(graceMs: number): Promise<boolean>;
}
