/** What work makes where each caller gets a handle of its own and ends it. */
interface Handle<T> {
  /** One more handle to the same. */
  duplicate(): T;
  /** It was not used. */
  end(how: 'unsent'): Promise<void>;
}

/** How callers share what the work has made. */
interface Sharing<T> {
  /** Called once for each caller. */
  give(made: T): T;
  /** Called when all callers have theirs. */
  discard(made: T): Promise<void>;
}

/** All callers get the same value. */
const byReference = { give: <T>(made: T): T => made, discard: async () => {} };

/** Each caller gets a handle of its own, and the one that was made ends unused. */
export const byHandle = <T extends Handle<T>>(): Sharing<T> => ({
  give: (handle) => handle.duplicate(),
  discard: (handle) => handle.end('unsent'),
});

type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/** Work in flight, and its waiting callers. */
class Flight<T> {
  readonly #controller = new AbortController();
  readonly #waiting = new Set<(outcome: Outcome<T>) => void>();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Rejects with the signal's reason if that comes first; then nothing was given out. */
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

  async succeed(made: T, { give, discard }: Sharing<T>): Promise<void> {
    for (const end of this.#waiting) end({ ok: true, value: give(made) });
    await discard(made);
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
 * when it succeeds gets what was made, as `sharing` says; callers that left get nothing.
 */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();
  readonly #sharing: Sharing<T>;

  constructor(sharing: Sharing<T> = byReference) {
    this.#sharing = sharing;
  }

  async join(key: string, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const running = this.#flights.get(key);
      const outcome = await (running ?? this.#start(key, work)).wait(signal);
      if (outcome.ok) return outcome.value;
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
        const made = await work(flight.signal);
        this.#flights.delete(key);
        // A failure to discard the work's own affects no caller: all have theirs.
        flight.succeed(made, this.#sharing).catch(() => {});
      } catch (error) {
        this.#flights.delete(key);
        flight.fail(error);
      }
    };
    void run();
    return flight;
  }
}
