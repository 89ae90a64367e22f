/** The wait for a slot would exceed the bound, or did so, or the job would miss its deadline. */
export interface Busy {
  readonly outcome: 'busy';
  readonly why: 'queue' | 'deadline';
  /** Whole seconds, 1 to 60. */
  readonly retryAfter: number;
}

/** What a 503 under load says: to try again after the wait that is predicted, in milliseconds. */
export const busyFor = (waitMs: number, why: Busy['why']): Busy => ({
  outcome: 'busy',
  retryAfter: Math.min(60, Math.max(1, Math.ceil(waitMs / 1000))),
  why,
});

/** Whole seconds after which to try again where nothing predicts the wait, by what has to happen meanwhile. */
export const retrySeconds = {
  /** A request of the account ends. */
  concurrency: 1,
  /** An upload or a download ends. */
  memory: 2,
  downloads: 2,
  /** The network is loaded. */
  starting: 5,
  /** An image job that takes much longer than it should ends. */
  overdueJob: 10,
  /** Somebody makes room on the disk. */
  fullDisk: 10,
} as const;
