import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/**
 * JSON lines. Callers log names, sizes and times; never a header, a body, a key or an address that the
 * download guard refused.
 */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return destination ? pino(options, destination) : pino(options, pino.destination({ fd: 1, sync: true }));
}
