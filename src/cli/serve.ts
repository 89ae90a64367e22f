import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import type { Config } from '../config/readConfig.ts';
import { Health } from '../ops/health.ts';
import { openLog } from '../ops/log.ts';
import { openServer } from '../server/openServer.ts';
import type { Server } from '../server/serverTypes.ts';
import { type Output, progressOn } from './modelsProgress.ts';
import { endShutdown, requestsMs, shutdownSignal } from './shutdown.ts';

/** Milliseconds that the exit waits for the reader of the log. */
const flushMs = 2000;

/**
 * V8 starts the next full collection when the heap, buffers included, has tripled. Its own choice follows the rate at
 * which objects are allocated, to which the bytes of buffers do not count (decision 0214).
 */
const heapGrowth = '--heap-growing-percent=200';

/**
 * `cutout serve`: runs until SIGTERM or SIGINT, resolves when everything is closed, and throws its parts' errors for
 * the operator. Static imports here delay the loading of the network (decision 0082).
 */
export async function serve(config: Config, { pull, out }: { pull: boolean; out: Output }): Promise<void> {
  setFlagsFromString(heapGrowth);
  const log = openLog(config.observe.logLevel);
  const { logger } = log;
  const health = new Health();
  const { signal, stuck } = shutdownSignal(config.http, health, logger);
  const observer = progressOn(out, config.engine.model);
  let server: Server | undefined;
  try {
    server = await openServer(config, { log, health, pull, observer, signal, onStuck: stuck });
    const { banner, openLocalAccount } = await import('./banner.ts');
    const local = await openLocalAccount(config, server);
    const opened = await server.ready();
    observer.done();
    out.write(await banner(config, server, { opened, local, out }));
    if (!signal.aborted) await once(signal, 'abort');
  } catch (error) {
    // A signal during the start is not an error.
    if (!signal.aborted) throw error;
  } finally {
    observer.done();
    const inTime = (await server?.close(requestsMs(config.http.stopTimeout))) ?? true;
    if (signal.aborted) logger.info({ inTime }, 'stopped');
    await log.flush(flushMs);
    if (signal.aborted) await endShutdown();
  }
}
