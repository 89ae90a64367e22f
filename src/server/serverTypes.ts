import type { Provider } from '../accounts/oidc.ts';
import type { ServedStores } from '../billing/stores.ts';
import type { PurchaseOptions, Purchases } from '../billing/stripeCheckout.ts';
import type { Cutout } from '../cutout/cutout.ts';
import type { DownloadOptions } from '../fetch/download.ts';
import type { HttpServer, ListenOptions } from '../http/server.ts';
import type { ProbeLimits } from '../image/types.ts';
import type { Improve } from '../improve/improve.ts';
import type { Clock } from '../limits/clock.ts';
import type { DurationEstimate } from '../limits/durationEstimate.ts';
import type { MemoryBounds } from '../limits/memoryBudget.ts';
import type { Health } from '../ops/health.ts';
import type { Log } from '../ops/log.ts';
import type { Recorder } from '../ops/record.ts';
import type { OpenedConsole } from './openConsole.ts';
import type { OpenedEngine } from './openEngine.ts';
import type { Limits } from './openLimits.ts';
import type { FetchOptions } from './openNetwork.ts';
import type { Observation } from './openObservation.ts';
import type { SharedState } from './openSharedState.ts';

export interface StartOptions extends FetchOptions {
  readonly log: Log;
  readonly health: Health;
  /** Called once, when image libraries hold more than half of the threads for pixels for longer than they may. */
  readonly onStuck?: () => void;
}

/** Replacements for the outside world, for tests; everything else comes from the configuration. */
export interface Overrides {
  readonly engine?: OpenedEngine | Promise<OpenedEngine>;
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
  readonly estimate?: DurationEstimate | undefined;
  /** Replaces the memory budget derived from the process' limit. */
  readonly memory?: MemoryBounds | undefined;
  /** Time limits for clients to send and to read. */
  readonly connectionTimeouts?: Pick<ListenOptions, 'stallMs' | 'headMs'>;
  /** Wraps or replaces the use case. */
  readonly wrapCutout?: (cutout: Cutout) => Cutout;
}

/** What a server keeps and watches, whichever network it runs. */
export interface Foundation {
  readonly stores: ServedStores;
  readonly improve: Improve;
  readonly shared: SharedState;
  readonly observation: Observation;
  readonly purchases: Purchases | undefined;
  readonly console: OpenedConsole;
  readonly images: ProbeLimits;
  readonly limits: Limits;
}

/** A server that listens on its port: /health answers at once, images are accepted when it is ready. */
export interface Server extends Foundation {
  readonly http: HttpServer;
  /** Waits for the network. Rejects with ModelError, EngineError, UserError, or the reason of the signal. */
  ready(): Promise<OpenedEngine>;
  /** Refuses connections, finishes requests within `graceMs` milliseconds and closes. True if all were answered. */
  close(graceMs: number): Promise<boolean>;
}
