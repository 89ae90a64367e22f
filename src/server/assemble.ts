import { toCredits } from '../billing/price.ts';
import { serveStores } from '../billing/stores.ts';
import { bookPurchase } from '../commands/credits.ts';
import type { Config } from '../config/readConfig.ts';
import type { Cutout } from '../cutout/cutout.ts';
import { openingSince } from '../engine/openingText.ts';
import type { EngineStats, OpeningStep } from '../engine/types.ts';
import { createApp } from '../http/app.ts';
import { type Devices, type ReadinessParts, whyNotReady } from '../http/route/health/route.ts';
import { listen } from '../http/server.ts';
import { keepSwept, openImprove } from '../improve/improve.ts';
import { createTakeImage } from '../improve/takeImage.ts';
import type { Logger } from '../ops/log.ts';
import { assertImageThreads, configureImages } from './images.ts';
import { pagesFolder, version } from './installation.ts';
import { openConsole } from './openConsole.ts';
import { openMeteredCutout } from './openCutout.ts';
import { type OpenedEngine, threadsOf } from './openEngine.ts';
import { openLimits, sizeMemoryBudget } from './openLimits.ts';
import { openObservation, watchWork } from './openObservation.ts';
import { openSharedState } from './openSharedState.ts';
import { billingOf, improveOf, purchasesOf } from './options.ts';
import type { Foundation, Overrides, Server, StartOptions } from './serverTypes.ts';

interface AssembleOptions extends StartOptions, Overrides {
  /** The engine, whose network is loading. */
  readonly opening: Promise<OpenedEngine>;
  /** Returns what of the networks is being opened now. */
  readonly openingSteps: () => readonly OpeningStep[];
  /** Stops the loading and closes the engine. */
  readonly closeEngine: () => Promise<void>;
}

/** Functions that close what has been opened. */
class Closers {
  readonly #logger: Logger;
  readonly #closers: (() => unknown)[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Calls them in reverse order. An error of one is logged, and the others are closed all the same. */
  async closeAll(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) {
      try {
        await close();
      } catch (error) {
        this.#logger.error({ err: error }, 'close');
      }
    }
  }
}

/** Opens the shop, if packs are for sale. Stripe's library is large and loaded only then. */
async function openPurchases(
  { billing, http }: Pick<Config, 'billing' | 'http'>,
  stores: Parameters<typeof bookPurchase>[0],
  api: Overrides['stripe'],
) {
  const selling = purchasesOf(billing, http.publicUrl);
  if (!selling) return undefined;
  const { Purchases } = await import('../billing/stripeCheckout.ts');
  return new Purchases({ ...selling, ...(api && { api }) }, (purchase) => bookPurchase(stores, purchase));
}

async function openFoundation(
  config: Config,
  options: AssembleOptions,
  closers: Closers,
): Promise<Foundation> {
  const { clock } = options;
  const { logger } = options.log;
  const stores = await serveStores({
    ...config.store,
    billing: billingOf(config.billing, config.http.timeout),
    onError: (error) => logger.error({ err: error }, 'ledger'),
    ...(clock && { now: clock.now }),
  });
  closers.add(() => stores.close());
  const improve = openImprove(improveOf(config.improve, stores.database));
  closers.add(keepSwept(improve, (error) => logger.error({ err: error }, 'improve')));
  const shared = await openSharedState(config, logger, stores, clock);
  closers.add(() => shared.close());
  const observation = await openObservation(config.observe, { logger, attempts: shared.attempts });
  closers.add(() => observation.close());
  const purchases = await openPurchases(config, stores, options.stripe);
  const people = await openConsole(config, stores, shared, options);
  const images = configureImages(config.cutout);
  // The device, and with it the number of network runs, may still be measured.
  let { workers } = threadsOf(config.engine);
  const opened = ({ threads }: OpenedEngine) => {
    workers = threads.workers;
  };
  options.opening.then(opened, () => {});
  const limits = openLimits(config, {
    logger,
    fetchFailures: shared.fetchFailures,
    rules: options.download,
    // Two more than network runs: one image is decoded and one encoded meanwhile.
    running: () => options.running ?? workers + 2,
    onStuck: options.onStuck,
  });
  return { stores, improve, shared, observation, purchases, console: people, images, limits };
}

/** Counts the GPUs that work, and those that were lost. */
const countDevices = ({ devices }: Pick<EngineStats, 'devices'>): Devices => {
  const lost = devices.filter((device) => device.lost !== undefined).length;
  return { ready: devices.length - lost, lost };
};

/** The use case of a server, and what is known of its network. */
interface Work extends ReadinessParts {
  /** Rejects with the error of the network, or with a UserError. */
  readonly cutout: Promise<Cutout>;
}

/** Opens the use case once the network is loaded. */
function openWork(
  config: Config,
  options: AssembleOptions,
  { stores, shared, images, ...foundation }: Foundation,
  closers: Closers,
): Work {
  let usable = () => true;
  let devices = (): Devices => ({ ready: 0, lost: 0 });
  const open = async (opened: OpenedEngine): Promise<Cutout> => {
    await assertImageThreads();
    const { logger } = options.log;
    const { metrics } = foundation.observation;
    const { memory, downloads, ...limits } = foundation.limits;
    const { name } = opened.network;
    logger.info({ network: name, device: opened.device, ...opened.precision }, 'network');
    if (options.memory) memory.bound(options.memory);
    else {
      const selects = (await opened.selector?.installed()) ?? false;
      sizeMemoryBudget(config, memory, { limits: images, opened, selects, logger });
    }
    const { scheduler } = limits;
    if (metrics) watchWork(metrics, opened, config, { scheduler, memory, downloads });
    const { ledger } = stores;
    const { estimate } = options;
    const parts = { ...limits, logger, metrics, ledger, shared, limits: images, estimate };
    const { cutout, networkUsable, stop } = openMeteredCutout(opened, config, parts);
    usable = networkUsable;
    devices = () => countDevices(opened.engine.stats());
    closers.add(stop);
    closers.add(() => opened.second?.stop());
    return options.wrapCutout ? options.wrapCutout(cutout) : cutout;
  };
  const cutout = options.opening.then(open);
  // `Server.ready` rejects with the same error.
  cutout.catch(() => {});
  return {
    cutout,
    health: options.health,
    storesReachable: () => stores.isReachable() && shared.isReachable(),
    networkUsable: () => usable(),
    devices: () => devices(),
    opening: () => options.openingSteps().map(openingSince),
  };
}

/** Creates the application over what was opened. */
function openApp(
  config: Config,
  options: AssembleOptions,
  foundation: Foundation,
  { cutout, ...readiness }: Work,
) {
  const { stores, improve, shared, observation, purchases, images, limits } = foundation;
  const { memory, scheduler, downloadsFor } = limits;
  const { timeout, proxies } = config.http;
  return createApp({
    ...foundation.console.parts,
    ...readiness,
    version: version(),
    logger: options.log.logger,
    recorders: [...(options.recorders ?? []), ...observation.recorders],
    timeout,
    proxies,
    stores,
    improve,
    purchases,
    rate: shared.rate,
    attempts: shared.attempts,
    scheduler,
    memory,
    // The route answers 503 until `health` is ready, which requires a network.
    cutout: async (request, call) => (await cutout)(request, call),
    takeImage: createTakeImage({ improve, downloadsFor, limits: images }),
    adminToken: config.accounts.adminToken,
    metrics: observation.metrics,
    metricsToken: config.observe.metricsToken,
    pages: pagesFolder,
  });
}

/** Watches what has metrics before the network is loaded. */
function watchStart(
  { log, openingSteps }: AssembleOptions,
  { stores, shared, observation: { metrics } }: Foundation,
  work: Work,
): void {
  const { ledger } = stores;
  metrics?.watch({
    droppedLines: () => log.dropped(),
    opening: openingSteps,
    ready: () => whyNotReady(work) === undefined,
    results: () => shared.idempotency.stats,
    reservations: () => ledger.openReservations(),
    balances: async () => toCredits(await ledger.balances()),
    booked: async () =>
      (await ledger.booked()).map(({ amount, ...row }) => ({ ...row, credits: toCredits(amount) })),
  });
}

/** Opens the parts of `openServer` that are not needed to begin loading the network. */
export async function assemble(config: Config, options: AssembleOptions): Promise<Server> {
  const { log, health, signal, opening } = options;
  const { host, port, timeout, keepAlive } = config.http;
  const closers = new Closers(log.logger);
  try {
    const foundation = await openFoundation(config, options, closers);
    const work = openWork(config, options, foundation, closers);
    watchStart(options, foundation, work);
    const app = openApp(config, options, foundation, work);
    closers.add(options.closeEngine);
    // Before the network is loaded: an error of the port is known at once, and health answers meanwhile.
    const http = await listen(app.callback(), {
      host,
      port,
      timeout,
      keepAlive,
      ...options.connectionTimeouts,
    });
    const ready = async () => {
      await work.cutout;
      signal.throwIfAborted();
      health.ready();
      const opened = await opening;
      if (options.pull) void opened.second?.fetch();
      return opened;
    };
    const close = async (graceMs: number) => {
      // After a drain, requests on open connections are still answered until everything is closed, so that
      // a balancer that notices late loses none.
      if (health.phase !== 'draining') health.stopping();
      const inTime = await http.close(graceMs);
      await closers.closeAll();
      return inTime;
    };
    return { ...foundation, http, ready, close };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}
