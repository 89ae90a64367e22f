import type { Config } from '../config/config.ts';
import { createHealth, type Health } from '../ops/health.ts';
import { type Logger, openLog } from '../ops/log.ts';
import { onStopSignal } from '../ops/stop.ts';
import { openServer } from '../server/openServer.ts';
import type { Server } from '../server/server.ts';
import { type Output, progressOn } from './modelsProgress.ts';

/** How long the end of the program waits for whoever reads the log. */
const flushMs = 2000;

/** Aborted by the first signal to stop, after the time of a drain. */
function stopSignal({ drainSeconds }: Config['http'], health: Health, logger: Logger): AbortSignal {
  const stopping = new AbortController();
  onStopSignal((signal) => {
    // Whoever presses Ctrl-C has no balancer to wait for.
    const drain = signal === 'SIGTERM' && health.phase === 'ready' ? drainSeconds : 0;
    logger.info({ signal, drain }, 'stopping');
    if (drain > 0) {
      health.draining();
      setTimeout(() => stopping.abort(), drain * 1000);
    } else {
      health.stopping();
      stopping.abort();
    }
  });
  return stopping.signal;
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

/**
 * `cutout serve`: works until SIGTERM or SIGINT and resolves when everything is closed. Throws what the parts throw;
 * the messages are for the operator. What is imported here statically delays the loading of the network
 * (docs/decisions/0082).
 */
export async function serve(config: Config, { pull, out }: { pull: boolean; out: Output }): Promise<void> {
  const log = openLog(config.observe.logLevel);
  const { logger } = log;
  const health = createHealth();
  const signal = stopSignal(config.http, health, logger);
  const observer = progressOn(out, config.engine.model);
  let server: Server | undefined;
  try {
    server = await openServer(config, { log, health, pull, observer, signal });
    const { banner, openLocalAccount } = await import('./banner.ts');
    const local = await openLocalAccount(config, server);
    const opened = await server.ready();
    observer.done();
    if (opened.precision.warning) out.write(`${opened.precision.warning}\n`);
    out.write(await banner(config, server, { opened, local, out }));
    await aborted(signal);
  } catch (error) {
    // A signal during the start is no failure.
    if (!signal.aborted) throw error;
  } finally {
    observer.done();
    const inTime = (await server?.close(config.http.stopTimeout * 1000)) ?? true;
    if (signal.aborted) logger.info({ inTime }, 'stopped');
    await log.flush(flushMs);
  }
}
