import { serveStores } from '../billing/stores.ts';
import { bookPurchase } from '../commands/credits.ts';
import type { Config } from '../config/readConfig.ts';
import type { Cutout } from '../cutout/cutout.ts';
import { openingSince } from '../engine/opening.ts';
import type { EngineStats, OpeningStep } from '../engine/types.ts';
import { createApp } from '../http/app.ts';
import type { Devices } from '../http/route/health/route.ts';
import { listen } from '../http/server.ts';
import { keepSwept, openImprove } from '../improve/open.ts';
import { createTakeImage } from '../improve/takeImage.ts';
import { FairScheduler } from '../limits/fairScheduler.ts';
import { MemoryBudget } from '../limits/memoryBudget.ts';
import { PixelJobs } from '../limits/pixelJobs.ts';
import { assertImageThreads, configureImages } from './images.ts';
import { pagesFolder, version } from './installation.ts';
import { meteredCutout } from './meteredCutout.ts';
import { watchServer, watchWork } from './metricSources.ts';
import { openConsole } from './openConsole.ts';
import { openDownloads } from './openDownloads.ts';
import { type OpenedEngine, threadsOf } from './openEngine.ts';
import { openObservation } from './openObservation.ts';
import { openSharedState } from './openSharedState.ts';
import { billingOf, improveOf, purchasesOf } from './options.ts';
import type { Overrides, Server, StartOptions } from './serverTypes.ts';
import { sizeMemoryBudget } from './sizeMemoryBudget.ts';

/** How many GPUs work. */
const countDevices = ({ devices }: Pick<EngineStats, 'devices'>): Devices => {
  const lost = devices.filter((device) => device.lost !== undefined).length;
  return { ready: devices.length - lost, lost };
};

interface AssembleOptions extends StartOptions, Overrides {
  /** The engine, whose network is loading. */
  readonly opening: Promise<OpenedEngine>;
  /** What of the networks is being opened now. */
  readonly openingSteps: () => readonly OpeningStep[];
  /** Stops the loading and closes the engine. */
  readonly closeEngine: () => Promise<void>;
}

/** The shop, if packs are for sale. Stripe's library is large and loaded only then. */
async function openPurchases(
  { billing }: Pick<Config, 'billing'>,
  stores: Parameters<typeof bookPurchase>[0],
  api: Overrides['stripe'],
) {
  const selling = purchasesOf(billing);
  if (!selling) return undefined;
  const { Purchases } = await import('../billing/stripeCheckout.ts');
  return new Purchases({ ...selling, ...(api && { api }) }, (purchase) => bookPurchase(stores, purchase));
}

/** The parts of `openServer` that are not needed to begin loading the network. */
export async function assemble(config: Config, options: AssembleOptions): Promise<Server> {
  const { log, health, signal, clock, opening } = options;
  const { logger } = log;
  const { host, port, timeout, keepAlive, proxies } = config.http;
  /** Functions that close what has been opened, called in reverse order. */
  const closers: (() => unknown)[] = [];
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) {
      try {
        await close();
      } catch (error) {
        // The others are closed all the same.
        logger.error({ err: error }, 'close');
      }
    }
  };
  try {
    const stores = await serveStores({
      ...config.store,
      billing: billingOf(config.billing, timeout),
      onError: (error) => logger.error({ err: error }, 'ledger'),
      ...(clock && { now: clock.now }),
    });
    closers.push(() => stores.close());
    const { accounts, ledger } = stores;
    const improve = openImprove(improveOf(config.improve, stores.database));
    closers.push(keepSwept(improve, (error) => logger.error({ err: error }, 'improve')));
    const shared = await openSharedState(config, logger, stores, clock);
    closers.push(() => shared.close());
    const { rate, attempts, idempotency } = shared;
    const storesReachable = () => stores.isReachable() && shared.isReachable();
    let networkUsable = () => true;
    let devices: () => Devices = () => ({ ready: 0, lost: 0 });
    const hasDevice = () => devices().lost === 0 || devices().ready > 0;
    const observation = await openObservation(config.observe, { logger, attempts });
    closers.push(() => observation.close());
    const { metrics } = observation;
    if (metrics)
      watchServer(metrics, {
        ledger,
        idempotency,
        droppedLines: () => log.dropped(),
        opening: options.openingSteps,
        isReady: () => health.phase === 'ready' && storesReachable() && networkUsable() && hasDevice(),
      });
    const purchases = await openPurchases(config, stores, options.stripe);
    const people = await openConsole(config, {
      stores,
      improve,
      shared,
      purchases,
      providers: options.providers,
      now: clock?.now,
    });
    const limits = configureImages(config.cutout);
    const memory = new MemoryBudget();
    const { downloadsFor, limit: downloads } = openDownloads(config.fetch, {
      memory,
      failures: shared.fetchFailures,
      rules: options.download,
    });
    // Two more than network runs: one image is decoded and one encoded meanwhile.
    const running = options.running ?? threadsOf(config.engine).workers + 2;
    const pixelJobs = new PixelJobs({
      threads: running,
      onOverdue: (overdue) => logger.warn({ overdue, threads: running }, 'an image job takes too long'),
      onStuck: (overdue) => {
        logger.error({ overdue, threads: running }, 'image jobs do not end');
        options.onStuck?.();
      },
    });
    const scheduler = new FairScheduler(
      {
        running,
        overdue: () => pixelJobs.overdue,
        waitMs: config.limits.queueSeconds * 1000 || Number.POSITIVE_INFINITY,
        memory,
      },
      () => performance.now(),
    );

    const prepare = async (network: OpenedEngine): Promise<Cutout> => {
      await assertImageThreads();
      const { name } = network.network;
      logger.info({ network: name, device: config.engine.device, ...network.precision }, 'network');
      if (options.memory) memory.bound(options.memory);
      else {
        const selects = (await network.selector?.installed()) ?? false;
        sizeMemoryBudget(config, memory, { limits, opened: network, selects, logger });
      }
      if (metrics) watchWork(metrics, network, config, { scheduler, memory, downloads });
      const parts = {
        logger,
        metrics,
        ledger,
        shared,
        scheduler,
        pixelJobs,
        downloadsFor,
        limits,
        estimate: options.estimate,
      };
      const { cutout, stop, ...metered } = meteredCutout(network, config, parts);
      networkUsable = metered.networkUsable;
      devices = () => countDevices(network.engine.stats());
      closers.push(stop);
      return options.wrapCutout ? options.wrapCutout(cutout) : cutout;
    };
    const cutout = opening.then(prepare);
    // `ready` rejects with the same error.
    cutout.catch(() => {});

    const app = createApp({
      version: version(),
      logger,
      health,
      storesReachable,
      networkUsable: () => networkUsable(),
      devices: () => devices(),
      opening: () => options.openingSteps().map(openingSince),
      recorders: [...(options.recorders ?? []), ...observation.recorders],
      timeout,
      authenticate: (hash) => accounts.authenticateHash(hash),
      balances: ledger,
      rate,
      scheduler,
      memory,
      // The route answers 503 until `health` is ready, which requires a network.
      cutout: async (request, call) => (await cutout)(request, call),
      takeImage: createTakeImage({ improve, downloadsFor, limits }),
      ...(config.accounts.adminToken && { admin: { ...stores, token: config.accounts.adminToken } }),
      ...(metrics &&
        config.observe.metricsToken && { metrics: { metrics, token: config.observe.metricsToken } }),
      ...(purchases && { purchases }),
      attempts,
      proxies,
      pages: pagesFolder,
      console: people.parts,
    });
    closers.push(options.closeEngine);
    // Before the network is loaded: an error of the port is known at once, and health answers meanwhile.
    const http = await listen(app.callback(), {
      host,
      port,
      timeout,
      keepAlive,
      ...options.connectionTimeouts,
    });
    return {
      http,
      stores,
      improve,
      idempotency,
      scheduler,
      memory,
      downloads,
      console: people,
      observation,
      ready: async () => {
        await cutout;
        signal.throwIfAborted();
        health.ready();
        return opening;
      },
      close: async (graceMs) => {
        // After a drain, requests on open connections are still answered until everything is closed, so that
        // a balancer that notices late loses none.
        if (health.phase !== 'draining') health.stopping();
        const inTime = await http.close(graceMs);
        await closeAll();
        return inTime;
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}
