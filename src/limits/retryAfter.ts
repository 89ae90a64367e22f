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

/** Seconds after which a request refused for memory may try again: by then another upload may have freed some. */
export const memoryRetrySeconds = 2;
