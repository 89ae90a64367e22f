/** A handle of which several callers may hold one each; each ends its own. */
export interface Shared<T> {
  /** One more handle to the same. */
  duplicate(): T;
  /** It was not used. */
  end(how: 'unsent'): Promise<void>;
}

type Outcome<T> = { readonly ok: true; readonly handle: T } | { readonly ok: false; readonly error: unknown };

/** Work in flight, and its waiting callers. */
class Flight<T extends Shared<T>> {
  readonly #controller = new AbortController();
  readonly #waiting = new Set<(outcome: Outcome<T>) => void>();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Rejects with the signal's reason if that comes first; then no handle was given out. */
  wait(signal: AbortSignal): Promise<Outcome<T>> {
    return new Promise((resolve, reject) => {
      const end = (outcome: Outcome<T>) => {
        signal.removeEventListener('abort', leave);
        resolve(outcome);
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

  /** Every waiting caller gets a handle; the given one ends unused. */
  async succeed(handle: T): Promise<void> {
    for (const end of this.#waiting) end({ ok: true, handle: handle.duplicate() });
    await handle.end('unsent');
  }

  fail(error: unknown): void {
    for (const end of this.#waiting) end({ ok: false, error });
  }
}

/**
 * Work that runs once for all callers that ask for its key at the same time.
 *
 * Callers that join while it runs wait for it. If it fails, the caller that started it gets the error, and the work of one
 * of the others runs. A caller whose signal aborts leaves with the signal's reason; the work is aborted when the last one
 * leaves. A flight lasts until its work has settled, aborted or not, so work of a key never overlaps. Each caller waiting
 * when it succeeds gets a handle, which it must end; callers that left get none.
 */
export class SingleFlight<T extends Shared<T>> {
  readonly #flights = new Map<string, Flight<T>>();

  async join(key: string, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const running = this.#flights.get(key);
      const outcome = await (running ?? this.#start(key, work)).wait(signal);
      if (outcome.ok) return outcome.handle;
      if (!running) throw outcome.error;
    }
  }

  get size(): number {
    return this.#flights.size;
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const flight = new Flight<T>();
    this.#flights.set(key, flight);
    const run = async () => {
      // Not in this turn, so that a caller waits before the work can settle.
      await undefined;
      try {
        const handle = await work(flight.signal);
        this.#flights.delete(key);
        // A failure to end the work's own handle affects no caller: all have theirs.
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
