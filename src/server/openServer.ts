import type { Provider } from '../accounts/oidc.ts';
import type { PurchaseOptions } from '../billing/purchases.ts';
import type { ServedStores } from '../billing/stores.ts';
import type { Config } from '../config/config.ts';
import type { CachedResult } from '../cutout/cachedResult.ts';
import type { Cutout } from '../cutout/cutout.ts';
import type { DownloadOptions } from '../fetch/download.ts';
import type { HttpServer, ListenOptions } from '../http/server.ts';
import type { Results } from '../idempotency/results.ts';
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
import { type OpenedEngine, openEngine } from './openEngine.ts';
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
  readonly engine?: OpenedEngine;
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
  readonly results: Results<CachedResult>;
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

/**
 * The one place where a server is put together: stores, shared state, observation, use case, HTTP. Opens everything but
 * the network, which goes on loading, and resolves when the port is open. Rejects with what the parts throw; the
 * messages are for the operator.
 *
 * The network is what a start waits for, so its opening begins first, on the engine's threads, and everything else is
 * imported and opened beside it (docs/decisions/0082): what is imported here statically delays it.
 */
export async function openServer(
  config: Config,
  start: StartOptions,
  overrides: Overrides = {},
): Promise<Server> {
  const ending = new AbortController();
  const signal = AbortSignal.any([start.signal, ending.signal]);
  const opening = overrides.engine
    ? Promise.resolve(overrides.engine)
    : openEngine(config.engine, { pull: start.pull, observer: start.observer, signal });
  // `ready` rejects with it; a fault of the rest comes first.
  opening.catch(() => {});
  const closeEngine = async () => {
    ending.abort();
    await opening.then(
      ({ engine }) => engine.close(0),
      () => {},
    );
  };
  try {
    const { assemble } = await import('./assemble.ts');
    return await assemble(config, { ...start, ...overrides, opening, closeEngine });
  } catch (error) {
    await closeEngine();
    throw error;
  }
}
