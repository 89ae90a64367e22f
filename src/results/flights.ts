type Settled<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

interface Flight<T> {
  readonly controller: AbortController;
  waiting: number;
  done: Promise<Settled<T>>;
}

/**
 * Work that is done once for all who ask for it at the same time.
 *
 * Whoever asks while it runs waits for it. If it fails, the one whose work it was gets the error and the next
 * one's own work runs. Who leaves (its signal) gets its signal's reason; the work goes on while anybody waits
 * and is told to stop when the last one leaves. A flight counts until its work has really ended, stopped or
 * not, so nothing runs twice at a time.
 */
export class Flights<T> {
  readonly #flights = new Map<string, Flight<T>>();

  async join(key: string, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const running = this.#flights.get(key);
      const settled = await wait(running ?? this.#start(key, work), signal);
      if (settled.ok) return settled.value;
      if (!running) throw settled.error;
    }
  }

  get size(): number {
    return this.#flights.size;
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const run = async (): Promise<Settled<T>> => {
      try {
        return { ok: true, value: await work(controller.signal) };
      } catch (error) {
        return { ok: false, error };
      } finally {
        this.#flights.delete(key);
      }
    };
    // After this turn, so that the flight is listed before its work can end.
    const flight: Flight<T> = { controller, waiting: 0, done: Promise.resolve().then(run) };
    this.#flights.set(key, flight);
    return flight;
  }
}

/** Rejects with the signal's reason when that comes first. */
async function wait<T>(flight: Flight<T>, signal: AbortSignal): Promise<Settled<T>> {
  let leave = () => {};
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
  });
  flight.waiting++;
  try {
    return await Promise.race([flight.done, left]);
  } catch (reason) {
    if (flight.waiting === 1) flight.controller.abort(reason);
    throw reason;
  } finally {
    signal.removeEventListener('abort', leave);
    flight.waiting--;
  }
}
