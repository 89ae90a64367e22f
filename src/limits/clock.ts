/** The clocks of a limit. `elapsed` measures its window; `now` is used only in what callers see. */
export interface Clock {
  /** Wall clock, Unix milliseconds; may be set forward or back. */
  readonly now: () => number;
  /** Monotonic clock, milliseconds since an arbitrary moment. */
  readonly elapsed: () => number;
}

export const systemClock: Clock = { now: Date.now, elapsed: () => performance.now() };
