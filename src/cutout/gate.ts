import { fail } from '../errors.ts';

/**
 * Two limits: `width` pieces of work run at a time, the others wait in order, and when `width + queue` are
 * there the next is refused at once. A decoded picture is large, an upload small: this bounds the former.
 */
export interface Gate {
  /** Throws `service_unavailable` when full, or the signal's reason when aborted while waiting. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
  readonly running: number;
  readonly waiting: number;
}

export function createGate(width: number, queue: number): Gate {
  let running = 0;
  const waiting = new Set<() => void>();

  const enter = (signal: AbortSignal): Promise<void> | undefined => {
    signal.throwIfAborted();
    if (running < width) {
      running += 1;
      return undefined;
    }
    if (waiting.size >= queue)
      throw fail('service_unavailable', { detail: 'Too many requests are waiting. Try again.' });
    return new Promise((resolve, reject) => {
      const leave = () => {
        waiting.delete(admit);
        reject(signal.reason);
      };
      const admit = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      waiting.add(admit);
      signal.addEventListener('abort', leave, { once: true });
    });
  };

  /** The place goes straight to the longest waiting, so nobody can slip in between. */
  const leave = () => {
    const [next] = waiting;
    if (next) {
      waiting.delete(next);
      next();
    } else {
      running -= 1;
    }
  };

  return {
    async run(work, signal) {
      await enter(signal);
      try {
        return await work();
      } finally {
        leave();
      }
    },
    get running() {
      return running;
    },
    get waiting() {
      return waiting.size;
    },
  };
}
