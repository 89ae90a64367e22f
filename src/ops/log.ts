import { writeSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';
import { BoundedOutput, isPipe } from './boundedOutput.ts';

export type { Logger };

/** JSON lines: names, sizes and times; never a header, body, key or address that the download rules refused. */
export function createLogger(level: string, destination: DestinationStream): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

export interface Log {
  readonly logger: Logger;
  /** Lines dropped so far because the reader of the log is too slow, or its file cannot be written. */
  readonly dropped: () => number;
  /** Resolves when all lines are written, or after `ms` milliseconds, when the rest is discarded. */
  readonly flush: (ms: number) => Promise<void>;
}

const stdout = 1;

/**
 * Writes each line to a file or a terminal at once. A line that cannot be written, as on a full disk, is dropped and
 * counted; the next one tries again, on a line of its own.
 */
class FileOutput {
  readonly #fd: number;
  #dropped = 0;
  #torn = false;

  constructor(fd: number) {
    this.#fd = fd;
  }

  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    let rest = Buffer.from(this.#torn ? `\n${line}` : line);
    const { length } = rest;
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#fd, rest));
      this.#torn = false;
    } catch {
      this.#dropped++;
      this.#torn ||= rest.length < length;
    }
  }
}

/** Logs to standard output, or `fd`, without ever blocking on its reader or ending the process when that fails. */
export function openLog(level: string, fd = stdout): Log {
  // Files never block for long; a terminal may be stopped by its user.
  if (!isPipe(fd)) {
    const output = new FileOutput(fd);
    return { logger: createLogger(level, output), dropped: () => output.dropped, flush: async () => {} };
  }
  const output = new BoundedOutput(fd, (dropped) =>
    logger.warn({ dropped }, 'log: lines were dropped because the reader did not keep up'),
  );
  const logger = createLogger(level, output);
  return { logger, dropped: () => output.dropped, flush: (ms) => output.flush(ms) };
}
