import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';

/** The maximum number of bytes queued for the reader, not counting what the system buffers. */
const maxWaiting = 4e6;

/** Whether the descriptor is read by another process: a container's log driver, journald, a program behind `|`. */
export function isPipe(fd: number): boolean {
  const stat = fstatSync(fd);
  return stat.isFIFO() || stat.isSocket();
}

/**
 * Writes lines to a pipe without blocking on its reader. What the system does not take is queued up to a bound;
 * further lines are dropped. `caughtUp` receives their number once the queue is empty.
 */
export class BoundedOutput {
  readonly #pipe: Socket;
  /** Those of this turn of the event loop: they go out together, in one write. */
  #lines = '';
  #dropped = 0;
  #reported = 0;

  constructor(fd: number, caughtUp: (dropped: number) => void) {
    this.#pipe = new Socket({ fd, readable: false, writable: true });
    process.once('exit', () => this.#send());
    // The reader has closed the pipe: lines are dropped from now on, and the service continues.
    this.#pipe.on('error', () => {});
    this.#pipe.on('drain', () => {
      const dropped = this.#dropped - this.#reported;
      this.#reported = this.#dropped;
      if (dropped > 0) caughtUp(dropped);
    });
  }

  /** Dropped lines so far. */
  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    const waiting = this.#pipe.writableLength + this.#lines.length + line.length;
    if (!this.#pipe.writable || waiting > maxWaiting) {
      this.#dropped++;
      return;
    }
    if (this.#lines === '') setImmediate(() => this.#send());
    this.#lines += line;
  }

  #send(): void {
    const lines = this.#lines;
    this.#lines = '';
    if (lines !== '') this.#pipe.write(lines);
  }

  /** Resolves when the system has taken all lines, or after `ms` milliseconds, when the rest is discarded. */
  async flush(ms: number): Promise<void> {
    this.#send();
    const pipe = this.#pipe;
    if (pipe.writableLength === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        pipe.destroy();
        resolve();
      }, ms);
      pipe.write('', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
