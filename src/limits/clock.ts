/** The two clocks of a limit. A window lasts as long as `elapsed` says; only what callers are told is a time of day. */
export interface Clock {
  /** Unix milliseconds. Somebody may set it, forward or back. */
  readonly now: () => number;
  /** Milliseconds since some moment. Never set, never goes back. */
  readonly elapsed: () => number;
}

export const systemClock: Clock = { now: Date.now, elapsed: () => performance.now() };
