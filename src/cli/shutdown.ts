import type { Config } from '../config/readConfig.ts';
import type { Health } from '../ops/health.ts';
import type { Logger } from '../ops/log.ts';
import { onStopSignal } from '../ops/stopSignals.ts';

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
export const requestsMs = (stopTimeout: number): number => Math.max(0, 1000 * stopTimeout - closeMs);

/** Ends the process after `ms` milliseconds, whatever a library does with its threads. */
async function exitAfter(ms: number, code = Number(process.exitCode ?? 0)): Promise<void> {
  const { loadAddon } = await import('../engine/addon.ts');
  loadAddon().exitAfter(ms, code);
}

/**
 * What SIGTERM and SIGINT do to a server: it drains, which `health` says, and then `signal` aborts; the second one ends the
 * process at once. `stuck` stops it as SIGTERM does, with an exit status of its own.
 */
export function shutdownSignal(
  { drainSeconds, stopTimeout }: Config['http'],
  health: Health,
  logger: Logger,
) {
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

/** Ends the process when everything is closed, whatever a library still does with its threads. */
export const endShutdown = (): Promise<void> => exitAfter(exitMs);
