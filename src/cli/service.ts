import { createApp } from '../app.ts';
import { createCreditCheck } from '../billing/creditCheck.ts';
import { credits, formatCredits, toCredits } from '../billing/price.ts';
import { serveStores } from '../billing/stores.ts';
import { bookPurchase } from '../commands/bookPurchase.ts';
import { ensureLocalAccount } from '../commands/ensureLocalAccount.ts';
import { type Config, describeAllocator } from '../config.ts';
import { createAdmission } from '../cutout/admission.ts';
import { type Cutout, createCutout } from '../cutout/cutout.ts';
import { createFetch } from '../cutout/fetchImage.ts';
import { createPrecheck } from '../cutout/precheck.ts';
import { PROFILES } from '../cutout/profile.ts';
import { largestWork, previewSize } from '../cutout/resourceEstimate.ts';

import { loadAddon } from '../engine/addon.ts';

import { IdleUnloadEngine } from '../engine/idleUnload.ts';

import { describeThreads } from '../engine/threads.ts';
import { SUBJECT_TYPES } from '../engine/types.ts';
import { fail, UserError } from '../errors.ts';
import { createDownloader, downloadRules } from '../fetch/download.ts';
import { largestBody } from '../http/middleware/receiveBody.ts';
import { type HttpServer, listen } from '../http/server.ts';
import type { ProbeLimits } from '../image/types.ts';
import { keepSwept, openImprove } from '../improve/open.ts';
import { createTakeImage } from '../improve/takeImage.ts';
import { DownloadLimit } from '../limits/downloads.ts';
import { DurationEstimate } from '../limits/durationEstimate.ts';
import { FairScheduler } from '../limits/fairScheduler.ts';
import { leastRoom, MemoryBudget, roomFor } from '../limits/memory.ts';
import type { Health } from '../ops/health.ts';
import type { Log, Logger } from '../ops/log.ts';
import { countedShare, memoryLimit } from '../ops/memory.ts';
import { openConsole } from './console.ts';
import { type OpenEngine, threadsOf } from './engine.ts';
import { greeting, type Secrets } from './greeting.ts';
import { configureImages } from './images.ts';
import type { Output } from './modelsProgress.ts';
import { type Observers, openObservers } from './observe.ts';
import { pagesFolder } from './pages.ts';
import { billingOf, improveOf, purchasesOf, storeOf } from './parts.ts';
import { openShared, type Shared } from './shared.ts';
import { version } from './version.ts';

/** Credits of the local account: enough for a private install never to run out. */
const firstGrant = credits(100_000);

/** Address for a person to paste; one that means "all of this machine" is written as this machine. */
function addressOf({ host }: Config, { address }: HttpServer): string {
  const everywhere = address.address === '0.0.0.0' || address.address === '::';
  const name = everywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${address.port}`;
}

function banner(
  config: Config,
  server: HttpServer,
  opened: OpenEngine,
  metricsUrl: string | undefined,
  secrets: Secrets,
  out: Output,
): string {
  const { dataDir } = config;
  const url = config.publicUrl ?? addressOf(config, server);
  const given = `${formatCredits(firstGrant)} credits`;
  const loopback = ['127.0.0.1', '::1'].includes(server.address.address);
  const { info, network, threads, precision, subjectTypes } = opened;
  const ms = Math.round(info.loadMs + info.warmUpMs);
  return [
    '',
    `Cutout ${version()} listens on ${url}${loopback ? ' (this machine only; CUTOUT_HOST=0.0.0.0 opens it)' : ''}`,
    `Network   ${network.name} on ${config.device} in ${precision.precision} (${precision.because}), ready in ${ms} ms`,
    `Types     ${subjectTypes ? SUBJECT_TYPES.join(', ') : 'off: X-Type is always other for type=auto'}`,
    `Threads   ${describeThreads(threads)}`,
    `Pages     ${url}/ to try it, ${url}/docs to read about it`,
    ...(metricsUrl ? [`Metrics   ${metricsUrl}`] : []),
    ...greeting(secrets, { out, dataDir, url, given }),
    '',
    '',
  ].join('\n');
}

/** Sets the memory of requests: what the limit leaves beside the process as it is now, with its network warm. */
function boundMemory(
  config: Config,
  memory: MemoryBudget,
  { limits, opened, logger }: { limits: ProbeLimits; opened: OpenEngine; logger: Logger },
): void {
  const limit = memoryLimit(config.memoryLimit);
  const kept = config.resultTtlSeconds > 0 && !config.redisUrl ? config.cacheMegabytes * 1e6 : 0;
  // Every run of a network at the same time takes what the warm-up took.
  const more = (opened.threads.workers - 1) * opened.engine.stats().keptBytes;
  const base = process.memoryUsage.rss() + more + kept;
  const room = Math.round(countedShare * limit.bytes - base);
  const mb = (bytes: number) => Math.round(bytes / 1e6);
  const facts = {
    limitMb: mb(limit.bytes),
    from: limit.from,
    baseMb: mb(base),
    requestsMb: mb(room),
    allocator: describeAllocator() ?? 'glibc, unbounded (npm start sets it)',
  };
  if (room < leastRoom)
    throw new UserError(
      `${mb(limit.bytes)} MB (${limit.from}) are too little memory: the process with its network and kept results takes ${mb(base)}. Give it ${mb((base + 2 * leastRoom) / countedShare)} MB, or set CUTOUT_KEEP_MEGABYTES lower.`,
    );
  memory.bound({ room, largestWork: largestWork(limits), largestBody });
  logger.info(facts, 'memory');
  if (room < roomFor(largestBody))
    logger.warn(
      { ...facts, wantedMb: mb(roomFor(largestBody)) },
      'memory: the largest bodies may be refused with 503',
    );
  const most = memory.mostWork;
  if (most < largestWork(limits))
    logger.warn(
      { ...facts, largestMegapixels: Math.floor(most / largestWork({ maxPixels: 1e6 })) },
      'memory: larger images may be refused with 503',
    );
}

export interface ServiceParts {
  readonly log: Log;
  readonly health: Health;
  /** Aborted on the first signal to stop. */
  readonly stopping: AbortSignal;
  /** The engine, which is being opened; closed here once it is open. */
  readonly opening: Promise<OpenEngine>;
  readonly out: Output;
}

/**
 * Opens the books and the port, waits for the network, prints what a person needs, and works until `stopping`.
 * Resolves when everything is closed. Throws what the parts throw; the messages are for the operator.
 */
export async function runService(
  config: Config,
  { log, health, stopping, opening, out }: ServiceParts,
): Promise<void> {
  const { logger } = log;
  const { dataDir, timeout, host, port } = config;
  const stores = await serveStores({
    ...storeOf(config),
    billing: billingOf(config),
    onError: (error) => logger.error({ err: error }, 'books'),
  });
  const { accounts, ledger } = stores;
  const improve = openImprove(improveOf(config, stores.database));
  const stopSweeping = keepSwept(improve, (error) => logger.error({ err: error }, 'improve'));
  let server: HttpServer | undefined;
  let opened: OpenEngine | undefined;
  let observers: Observers | undefined;
  let idleUnloadEngine: IdleUnloadEngine | undefined;
  let shared: Shared | undefined;
  try {
    shared = await openShared(config, logger, stores);
    const { rate, concurrency, attempts, results, fetchFailures, permitted } = shared;
    observers = await openObservers(config, { logger, attempts });
    const { metrics } = observers;
    metrics?.watch({
      droppedLines: () => log.dropped(),
      ready: () => health.phase === 'ready',
      results: () => results.stats,
      reservations: () => ledger.openReservations(),
      balances: async () => toCredits(await ledger.balances()),
      booked: async () =>
        (await ledger.booked()).map(({ amount, ...row }) => ({ ...row, credits: toCredits(amount) })),
    });
    const local = await ensureLocalAccount({
      stores,
      dataDir,
      givenKey: config.apiKey,
      grant: firstGrant,
    });
    const limits = configureImages(config);
    const selling = purchasesOf(config);
    // Stripe's library is large: loaded only where something is sold.
    const { Purchases } = selling ? await import('../billing/purchases.ts') : {};
    const purchases =
      selling && Purchases && new Purchases(selling, (purchase) => bookPurchase(stores, purchase));
    const people = await openConsole(config, { stores, improve, shared, purchases });
    const memory = new MemoryBudget();
    const downloads = new DownloadLimit({
      perAccount: config.fetchAccountConcurrency,
      total: config.fetchConcurrency,
    });
    const openFetch = createFetch({
      downloader: createDownloader({
        ...downloadRules,
        mode: config.fetch,
        allowHosts: config.fetchAllow,
        ports: config.fetchPorts,
      }),
      memory,
      limit: downloads,
      failures: fetchFailures,
    });
    const scheduler = new FairScheduler(
      {
        // Two more than run networks: one is decoded and one encoded meanwhile.
        running: threadsOf(config).workers + 2,
        waitMs: config.queueSeconds * 1000 || Number.POSITIVE_INFINITY,
        memory,
      },
      () => performance.now(),
    );
    // The port first: whether it can be had is known at once, and health answers while the network loads.
    let cutout: Cutout = async () => {
      throw fail('service_unavailable');
    };
    const app = createApp({
      version: version(),
      logger,
      health,
      recorders: observers.recorders,
      timeout,
      authenticate: (key) => accounts.authenticate(key),
      balances: ledger,
      rate,
      scheduler,
      memory,
      cutout: (request, call) => cutout(request, call),
      takeImage: createTakeImage({ improve, openFetch, limits }),
      ...(config.adminToken && { admin: { ...stores, token: config.adminToken } }),
      ...(metrics && config.metricsToken && { metrics: { metrics, token: config.metricsToken } }),
      ...(purchases && { purchases }),
      attempts,
      proxies: config.proxies,
      pages: pagesFolder,
      console: people.parts,
    });
    server = await listen(app.callback(), { host, port, timeout });

    opened = await opening;
    stopping.throwIfAborted();
    const { engine, network, info, precision, subjectTypes } = opened;
    logger.info({ network: network.name, device: config.device, ...precision }, 'network');
    if (precision.warning) out.write(`${precision.warning}\n`);
    const profile = PROFILES[config.profile];
    boundMemory(config, memory, { limits, opened, logger });
    metrics?.networkLoaded(info.loadMs + info.warmUpMs);
    metrics?.install({
      version: version(),
      node: process.versions.node,
      network: network.name,
      device: config.device,
      precision: precision.precision,
      profile: config.profile,
      onnxruntime: loadAddon().versions().onnxruntime,
    });
    metrics?.watch({
      admission: () => scheduler.stats,
      memory: () => memory.stats,
      downloads: () => downloads.running,
      engine: () => engine.stats(),
    });
    const admission = createAdmission({
      rate,
      concurrency,
      reservations: ledger,
      scheduler,
      estimate: new DurationEstimate(previewSize(profile, network), {
        network: opened.info.warmUpMs / ((network.width * network.height) / 1e6),
      }),
    });
    const networkRests = (what: 'unloaded' | 'loaded', ms: number) => {
      logger.info({ network: network.name, ms: Math.round(ms) }, `network ${what}`);
      if (what === 'loaded') metrics?.networkLoaded(ms);
      else metrics?.networkUnloaded();
    };
    idleUnloadEngine =
      config.idleUnload > 0
        ? new IdleUnloadEngine(engine, {
            afterMs: config.idleUnload * 1000,
            load: opened.reload,
            told: networkRests,
          })
        : undefined;
    cutout = createCutout({
      engine: idleUnloadEngine ?? engine,
      network,
      profile,
      subjectTypes,
      admission,
      results,
      openFetch,
      precheck: createPrecheck(admission, {
        checkCredit: createCreditCheck(ledger, billingOf(config).prices),
        permitted,
      }),
      limits,
      timeout,
    });
    health.ready();
    const secrets = { local, link: await people.link() };
    out.write(banner(config, server, opened, observers.metricsUrl, secrets, out));
    await new Promise<void>((resolve) => {
      if (stopping.aborted) resolve();
      stopping.addEventListener('abort', () => resolve(), { once: true });
    });
  } catch (error) {
    // A signal during the start is no failure.
    if (!stopping.aborted) throw error;
  } finally {
    // After a drain what still comes, on connections that are open, is answered until all is closed: a balancer that
    // learns of it last loses nothing.
    if (health.phase !== 'draining') health.stopping();
    const inTime = (await server?.close(config.stopTimeout * 1000)) ?? true;
    idleUnloadEngine?.stop();
    await opened?.engine.close(0);
    await observers?.close();
    shared?.close();
    stopSweeping();
    await stores.close();
    if (stopping.aborted) logger.info({ inTime }, 'stopped');
  }
}
