import { setFlagsFromString } from 'node:v8';
import type { Config } from '../config/readConfig.ts';
import { createHealth, type Health } from '../ops/health.ts';
import { type Logger, openLog } from '../ops/log.ts';
import { onStopSignal } from '../ops/stop.ts';
import { openServer } from '../server/openServer.ts';
import type { Server } from '../server/serverTypes.ts';
import { type Output, progressOn } from './modelsProgress.ts';

/** Milliseconds that the exit waits for the reader of the log. */
const flushMs = 2000;

/**
 * V8 starts the next full collection when the heap, buffers included, has tripled. Its own choice follows the rate at
 * which objects are allocated, to which the bytes of buffers do not count (docs/decisions/0214).
 */
const heapGrowth = '--heap-growing-percent=200';

/**
 * Exit status after image jobs that do not end held more than half of the threads for pixels: EX_TEMPFAIL of sysexits.h,
 * with which a supervisor starts the server again.
 */
const stuckStatus = 75;

/**
 * Milliseconds before the end of the grace period at which requests are cut off, so that what they leave is settled and
 * closed within it; and at which the process ends whatever is still to be closed.
 */
const closeMs = 5000;
const endMs = 500;

/** Milliseconds that the process gets to exit when everything is closed. */
const exitMs = 1000;

/** Milliseconds that requests may take to finish, of a grace period of so many seconds. */
const requestsMs = (stopTimeout: number): number => Math.max(0, 1000 * stopTimeout - closeMs);

interface Stop {
  readonly signal: AbortSignal;
  /** Stops as SIGTERM does, with an exit status of its own. */
  readonly stuck: () => void;
}

/** Ends the process after `ms` milliseconds, whatever a library does with its threads. */
async function exitAfter(ms: number, code = Number(process.exitCode ?? 0)): Promise<void> {
  const { loadAddon } = await import('../engine/addon.ts');
  loadAddon().exitAfter(ms, code);
}

/** `signal` is aborted by the first stop signal, after the drain period. */
function stopSignal({ drainSeconds, stopTimeout }: Config['http'], health: Health, logger: Logger): Stop {
  const stopping = new AbortController();
  let begun = false;
  const stop = (reason: object, drain: number) => {
    begun = true;
    logger.info({ ...reason, drain }, 'stopping');
    // Nothing that hangs, here or in a library, outlasts this.
    exitAfter(1000 * drain + requestsMs(stopTimeout) + closeMs - endMs).catch((error: unknown) =>
      logger.error({ err: error }, 'stopping'),
    );
    if (drain > 0) {
      health.draining();
      setTimeout(() => stopping.abort(), drain * 1000);
    } else {
      health.stopping();
      stopping.abort();
    }
  };
  onStopSignal(
    (signal) => {
      // There is no load balancer to wait for after Ctrl-C.
      if (!begun) stop({ signal }, signal === 'SIGTERM' && health.phase === 'ready' ? drainSeconds : 0);
    },
    () => void exitAfter(0, 1),
  );
  const stuck = () => {
    if (begun) return;
    process.exitCode = stuckStatus;
    stop({ exitCode: stuckStatus }, health.phase === 'ready' ? drainSeconds : 0);
  };
  return { signal: stopping.signal, stuck };
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

/**
 * `cutout serve`: runs until SIGTERM or SIGINT and resolves when everything is closed. Throws the errors of
 * the parts, whose messages are for the operator. Static imports here delay the loading of the network
 * (docs/decisions/0082).
 */
export async function serve(config: Config, { pull, out }: { pull: boolean; out: Output }): Promise<void> {
  setFlagsFromString(heapGrowth);
  const log = openLog(config.observe.logLevel);
  const { logger } = log;
  const health = createHealth();
  const { signal, stuck } = stopSignal(config.http, health, logger);
  const observer = progressOn(out, config.engine.model);
  let server: Server | undefined;
  try {
    server = await openServer(config, { log, health, pull, observer, signal, onStuck: stuck });
    const { banner, openLocalAccount } = await import('./banner.ts');
    const local = await openLocalAccount(config, server);
    const opened = await server.ready();
    observer.done();
    if (opened.precision.warning) out.write(`${opened.precision.warning}\n`);
    out.write(await banner(config, server, { opened, local, out }));
    await aborted(signal);
  } catch (error) {
    // A signal during the start is not an error.
    if (!signal.aborted) throw error;
  } finally {
    observer.done();
    const inTime = (await server?.close(requestsMs(config.http.stopTimeout))) ?? true;
    if (signal.aborted) logger.info({ inTime }, 'stopped');
    await log.flush(flushMs);
    if (signal.aborted) await exitAfter(exitMs);
  }
}
