import {
  type RateLimit,
  type RateOptions,
  type RateOutcome,
  type RateState,
  rateCost,
  rateState,
} from './rate.ts';

interface Window {
  readonly start: number;
  used: number;
  calls: number;
}

/** Windows that are over are dropped when there are more than this. */
const keptWindows = 10_000;

/** Rate windows of one process: decided within one turn, so nothing comes in between. */
export class MemoryRateLimit implements RateLimit {
  readonly #options: RateOptions;
  readonly #milliseconds: number;
  readonly #now: () => number;
  readonly #windows = new Map<string, Window>();

  /** `now` gives Unix milliseconds. */
  constructor(options: RateOptions, now: () => number) {
    this.#options = options;
    this.#milliseconds = options.windowSeconds * 1000;
    this.#now = now;
  }

  get limited(): boolean {
    return this.#options.megapixels > 0;
  }

  async state(account: string): Promise<RateState> {
    return this.#state(this.#current(account));
  }

  async usedUp(account: string): Promise<RateState | undefined> {
    const state = this.#state(this.#current(account));
    return state.remaining === 0 ? state : undefined;
  }

  async take(account: string, pixels: number): Promise<RateOutcome> {
    if (!this.limited) return { outcome: 'taken', ticket: { giveBack: async () => {} } };
    const known = this.#current(account);
    const cost = rateCost(this.#options, pixels);
    if (cost > this.#options.megapixels - (known?.used ?? 0))
      return { outcome: 'refused', state: this.#state(known) };

    const window = known ?? this.#open(account);
    window.used += cost;
    window.calls++;
    let taken = true;
    const giveBack = async () => {
      if (!taken) return;
      taken = false;
      window.used -= cost;
      window.calls--;
      if (window.calls === 0 && this.#windows.get(account) === window) this.#windows.delete(account);
    };
    return { outcome: 'taken', ticket: { giveBack } };
  }

  #state(window: Window | undefined): RateState {
    return rateState(this.#options, this.#now(), window);
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
}
