import type { Clock } from './clock.ts';
import { RateLimit, type RateOptions, type RateState, rateState, type Share } from './rate.ts';

interface Window {
  /** When it began, on the monotonic clock. */
  readonly start: number;
  /** Its end as reported to callers, Unix milliseconds. */
  end: number;
  used: number;
  calls: number;
}

/** Milliseconds that the two clocks may differ within a window before the wall clock counts as set. */
const setBy = 100;

/** Rate windows of one process. Every decision is synchronous and therefore atomic. */
export class InMemoryRateLimit extends RateLimit {
  readonly #milliseconds: number;
  readonly #clock: Clock;
  readonly #most: number;
  /** The windows by name, in the order in which they began and expire. */
  readonly #windows = new Map<string, Window>();

  /** Of more than `most` windows the oldest is forgotten, although it has not expired: for names that strangers choose. */
  constructor(options: RateOptions, clock: Clock, most = Number.POSITIVE_INFINITY) {
    super(options, clock.now);
    this.#milliseconds = options.windowSeconds * 1000;
    this.#clock = clock;
    this.#most = most;
  }

  async share(name: string, cost: number): Promise<Share> {
    const known = this.#current(name);
    if (cost === 0 || cost > this.options.limit - (known?.used ?? 0))
      return { taken: false, state: this.#state(known), release: async () => {} };
    const window = known ?? this.#open(name);
    window.used += cost;
    window.calls++;
    const release = async () => {
      window.used -= cost;
      window.calls--;
      if (window.calls === 0 && this.#windows.get(name) === window) this.#windows.delete(name);
    };
    return { taken: true, state: this.#state(window), release };
  }

  #state(window: Window | undefined): RateState {
    const now = this.#clock.now();
    if (!window) return rateState(this.options, now);
    const end = now + window.start + this.#milliseconds - this.#clock.elapsed();
    // The reported end is the same for the whole window, unless the wall clock was set.
    if (Math.abs(end - window.end) > setBy) window.end = end;
    return {
      ...rateState(this.options, now, { end, used: window.used }),
      reset: Math.ceil(window.end / 1000),
    };
  }

  #current(name: string): Window | undefined {
    const window = this.#windows.get(name);
    return window && this.#clock.elapsed() < window.start + this.#milliseconds ? window : undefined;
  }

  #open(name: string): Window {
    const now = this.#clock.elapsed();
    // An expired one is moved to the end.
    this.#windows.delete(name);
    for (const [oldest, { start }] of this.#windows) {
      if (this.#windows.size < this.#most && now < start + this.#milliseconds) break;
      this.#windows.delete(oldest);
    }
    const window = { start: now, end: this.#clock.now() + this.#milliseconds, used: 0, calls: 0 };
    this.#windows.set(name, window);
    return window;
  }
}
