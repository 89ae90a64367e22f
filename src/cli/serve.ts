import type { Config } from '../config.ts';
import { createHealth } from '../ops/health.ts';
import { openLog } from '../ops/log.ts';
import { onStopSignal } from '../ops/stop.ts';
import { openEngine } from './engine.ts';
import { type Output, progressOn } from './modelsProgress.ts';

/** How long the end of the program waits for whoever reads the log. */
const flushMs = 2000;

/**
 * `cutout serve`: works until SIGTERM or SIGINT and resolves when everything is closed. Throws what the parts throw;
 * the messages are for the operator.
 *
 * The network is what a start waits for, so its opening begins first, on the engine's threads, and everything else is
 * imported and opened beside it (docs/decisions/0082): what is imported here statically delays it.
 */
export async function serve(config: Config, { pull, out }: { pull: boolean; out: Output }): Promise<void> {
  const log = openLog(config.logLevel);
  const { logger } = log;
  const health = createHealth();
  const stopping = new AbortController();
  onStopSignal((signal) => {
    // Whoever presses Ctrl-C has no balancer to wait for.
    const drain = signal === 'SIGTERM' && health.phase === 'ready' ? config.drainSeconds : 0;
    logger.info({ signal, drain }, 'stopping');
    if (drain > 0) {
      health.draining();
      setTimeout(() => stopping.abort(), drain * 1000);
    } else {
      health.stopping();
      stopping.abort();
    }
  });
  const observer = progressOn(out, config.model);
  const opening = openEngine(config, { pull, observer, signal: stopping.signal }).finally(() =>
    observer.done(),
  );
  // Whoever waits for it hears of it; a fault of the rest comes first.
  opening.catch(() => {});
  try {
    const { runService } = await import('./service.ts');
    await runService(config, { log, health, stopping: stopping.signal, opening, out });
  } finally {
    stopping.abort();
    await opening.then(
      ({ engine }) => engine.close(0),
      () => {},
    );
    await log.flush(flushMs);
  }
}
