/** Values of the rate headers and Retry-After (CONTRACT section 11). */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Unix time in whole seconds, never before the window is really over. */
  readonly reset: number;
  /** Whole seconds until the reset, at least 1. */
  readonly retryAfter: number;
}

export interface RateTicket {
  /** As it is now: other calls may have taken more since. */
  state(): RateState;
  /** The call failed and counts nothing. Once; later calls change nothing. */
  giveBack(): void;
}

export type RateOutcome =
  | { readonly outcome: 'taken'; readonly ticket: RateTicket }
  | { readonly outcome: 'refused'; readonly state: RateState };

export interface RateOptions {
  /** Megapixels an account may send in one window; 0 = no limit. */
  readonly megapixels: number;
  readonly windowSeconds: number;
}

export const standardRate: RateOptions = { megapixels: 500, windowSeconds: 60 };

/** What is told where there is no limit: clients fail on a missing number, and divide by this one safely. */
const unlimited = 1_000_000;

interface Window {
  readonly start: number;
  used: number;
  calls: number;
}

/** Windows that are over are dropped when there are more than this. */
const keptWindows = 10_000;

/**
 * Megapixels a window and account. The window starts with its first counted call and is fixed; a call that
 * does not fit is refused and consumes nothing; a failed one gives back what it took, its window included if
 * it was the only one. docs/decisions/0056 says why this is not a library.
 */
export class RateLimit {
  readonly #limit: number;
  readonly #milliseconds: number;
  readonly #now: () => number;
  readonly #windows = new Map<string, Window>();

  /** `now` gives Unix milliseconds. */
  constructor(options: RateOptions, now: () => number) {
    this.#limit = options.megapixels;
    this.#milliseconds = options.windowSeconds * 1000;
    this.#now = now;
  }

  /** False: everything goes through. */
  get limited(): boolean {
    return this.#limit > 0;
  }

  state(account: string): RateState {
    return this.#state(this.#current(account));
  }

  /** The state to refuse a call with before it is even read; undefined while anything is left. */
  usedUp(account: string): RateState | undefined {
    const state = this.state(account);
    return state.remaining === 0 ? state : undefined;
  }

  /** `pixels` of the upright input. A picture beyond the whole limit takes all of a fresh window. */
  take(account: string, pixels: number): RateOutcome {
    const known = this.#current(account);
    if (this.#limit === 0) {
      return { outcome: 'taken', ticket: { state: () => this.#state(undefined), giveBack: () => {} } };
    }
    const cost = Math.min(this.#limit, Math.max(1, Math.ceil(pixels / 1e6)));
    if (cost > this.#limit - (known?.used ?? 0)) return { outcome: 'refused', state: this.#state(known) };

    const window = known ?? this.#open(account);
    window.used += cost;
    window.calls++;
    let taken = true;
    const giveBack = () => {
      if (!taken) return;
      taken = false;
      window.used -= cost;
      window.calls--;
      if (window.calls === 0 && this.#windows.get(account) === window) this.#windows.delete(account);
    };
    return { outcome: 'taken', ticket: { state: () => this.state(account), giveBack } };
  }

  #current(account: string): Window | undefined {
    const window = this.#windows.get(account);
    return window && this.#now() < window.start + this.#milliseconds ? window : undefined;
  }

  #open(account: string): Window {
    const now = this.#now();
    if (this.#windows.size >= keptWindows) {
      for (const [key, { start }] of this.#windows) {
        if (now >= start + this.#milliseconds) this.#windows.delete(key);
      }
    }
    const window = { start: now, used: 0, calls: 0 };
    this.#windows.set(account, window);
    return window;
  }

  #state(window: Window | undefined): RateState {
    const now = this.#now();
    const end = (window?.start ?? now) + this.#milliseconds;
    const limit = this.#limit === 0 ? unlimited : this.#limit;
    return {
      limit,
      remaining: limit - (window?.used ?? 0),
      reset: Math.ceil(end / 1000),
      retryAfter: Math.max(1, Math.ceil((end - now) / 1000)),
    };
  }
}
