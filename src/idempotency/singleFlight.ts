/** What several may hold at once; each ends its own. */
export interface Shared<T> {
  another(): T;
  /** Not used after all. */
  end(how: 'unsent'): Promise<void>;
}

type Ended<T> = { readonly ok: true; readonly handle: T } | { readonly ok: false; readonly error: unknown };

/** Work under way, and those who wait for it. */
class Flight<T extends Shared<T>> {
  readonly #controller = new AbortController();
  readonly #waiting = new Set<(ended: Ended<T>) => void>();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Rejects with the signal's reason when that comes first; then nothing was handed over. */
  wait(signal: AbortSignal): Promise<Ended<T>> {
    return new Promise((resolve, reject) => {
      const end = (ended: Ended<T>) => {
        signal.removeEventListener('abort', leave);
        resolve(ended);
      };
      const leave = () => {
        this.#waiting.delete(end);
        reject(signal.reason);
        if (this.#waiting.size === 0) this.#controller.abort(signal.reason);
      };
      this.#waiting.add(end);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Everyone who waits now gets a handle; where nobody does it is not used. */
  async succeed(handle: T): Promise<void> {
    for (const end of this.#waiting) end({ ok: true, handle: handle.another() });
    await handle.end('unsent');
  }

  fail(error: unknown): void {
    for (const end of this.#waiting) end({ ok: false, error });
  }
}

/**
 * Work that is done once for all who ask for it at the same time.
 *
 * Whoever asks while it runs waits for it. If it fails, the one whose work it was gets the error and the next
 * one's own work runs. Who leaves (its signal) gets its signal's reason; the work goes on while anybody waits
 * and is told to stop when the last one leaves. A flight counts until its work has really ended, stopped or
 * not, so nothing runs twice at a time. What the work gives is handed to all who wait at that moment, each of whom then
 * has to end a handle of its own, and to nobody who left.
 */
export class SingleFlight<T extends Shared<T>> {
  readonly #flights = new Map<string, Flight<T>>();

  async join(key: string, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const running = this.#flights.get(key);
      const ended = await (running ?? this.#start(key, work)).wait(signal);
      if (ended.ok) return ended.handle;
      if (!running) throw ended.error;
    }
  }

  get size(): number {
    return this.#flights.size;
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const flight = new Flight<T>();
    this.#flights.set(key, flight);
    const run = async () => {
      // After this turn, so that somebody waits for it before its work can end.
      await undefined;
      try {
        const handle = await work(flight.signal);
        this.#flights.delete(key);
        // That the work's own handle could not be ended concerns nobody: all who waited have theirs.
        flight.succeed(handle).catch(() => {});
      } catch (error) {
        this.#flights.delete(key);
        flight.fail(error);
      }
    };
    void run();
    return flight;
  }
}
