import { type DestinationStream, type Logger, pino } from 'pino';
import { BoundedOutput, isPipe } from './boundedOutput.ts';

export type { Logger };

/**
 * JSON lines. Callers log names, sizes and times; never a header, a body, a key or an address that the
 * download rules refused.
 */
export function createLogger(level: string, destination: DestinationStream): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

export interface Log {
  readonly logger: Logger;
  /** Lines dropped so far because the reader of the log is too slow. */
  readonly dropped: () => number;
  /** Resolves when all lines are written, or after `ms` milliseconds, when the rest is discarded. */
  readonly flush: (ms: number) => Promise<void>;
}

const stdout = 1;

/** Logs to standard output without ever blocking on its reader. */
export function openLog(level: string): Log {
  // Files never block for long; a terminal may be stopped by its user.
  if (!isPipe(stdout))
    return {
      logger: createLogger(level, pino.destination({ fd: stdout, sync: true })),
      dropped: () => 0,
      flush: async () => {},
    };
  const output = new BoundedOutput(stdout, (dropped) =>
    logger.warn({ dropped }, 'log: lines were dropped because the reader did not keep up'),
  );
  const logger = createLogger(level, output);
  return { logger, dropped: () => output.dropped, flush: (ms) => output.flush(ms) };
}
