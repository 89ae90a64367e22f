import { type DestinationStream, type Logger, pino } from 'pino';
import { BoundedOutput, isPipe } from './boundedOutput.ts';

export type { Logger };

/**
 * JSON lines. Callers log names, sizes and times; never a header, a body, a key or an address that the
 * download guard refused.
 */
export function createLogger(level: string, destination: DestinationStream): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

export interface Log {
  readonly logger: Logger;
  /** Lines so far that were thrown away because whoever reads the log does not keep up. */
  readonly dropped: () => number;
  /** Resolves when all lines are written, or after `ms`: what is left then is thrown away. */
  readonly flush: (ms: number) => Promise<void>;
}

const stdout = 1;

/** The log of this process on its standard output. Writing it waits for nobody. */
export function openLog(level: string): Log {
  // Files take all there is room for; a person at a terminal may stop it.
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
