/** Values of the rate headers and Retry-After (docs/contract.md section 11). */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Unix time in whole seconds, never before the window has ended. */
  readonly reset: number;
  /** Whole seconds until the reset, at least 1. */
  readonly retryAfter: number;
}

export interface RateTicket {
  /** Returns what a failed call took to the window. Only the first call has an effect. Never rejects. */
  release(): Promise<void>;
}

export type RateOutcome =
  | { readonly outcome: 'taken'; readonly ticket: RateTicket }
  | { readonly outcome: 'refused'; readonly state: RateState };

export interface RateOptions {
  /** Megapixels an account may send in one window; 0: no limit. */
  readonly megapixels: number;
  readonly windowSeconds: number;
}

/**
 * Rate limit in megapixels per account and window. A fixed window starts with its first counted call. A call
 * that does not fit is refused and consumes nothing; a failed one gives back what it took, and the window
 * with it if it was the only one. decision 0056 says why this is not a library, 0145 how nodes share
 * it.
 */
export interface RateLimit {
  /** False: every call is accepted. */
  readonly limited: boolean;
  /** The window's state for headers; that of a fresh window if it cannot be known. Never rejects. */
  state(account: string): Promise<RateState>;
  /** State for headers of a refusal before the account is known: nothing left for `seconds`. */
  refusal(seconds: number): RateState;
  /** The state to refuse a call with before its body is read; undefined while anything is left. */
  usedUpState(account: string): Promise<RateState | undefined>;
  /** `pixels` of everything that the call decodes. One that needs more than the limit takes all of a fresh window. */
  take(account: string, pixels: number): Promise<RateOutcome>;
}

/** Reported where there is no limit: clients fail on a missing number and may divide by it. */
const unlimited = 1_000_000;

/** Megapixels that an image counts, at most the whole window. */
export const rateCost = ({ megapixels }: Pick<RateOptions, 'megapixels'>, pixels: number): number =>
  Math.min(megapixels, Math.max(1, Math.ceil(pixels / 1e6)));

/**
 * `end` of the window and `now` in Unix milliseconds of one clock; without a window, the state of a fresh
 * one.
 */
export function rateState(
  { megapixels, windowSeconds }: RateOptions,
  now: number,
  window?: { readonly end: number; readonly used: number },
): RateState {
  const end = window?.end ?? now + windowSeconds * 1000;
  const limit = megapixels === 0 ? unlimited : megapixels;
  return {
    limit,
    remaining: limit - (window?.used ?? 0),
    reset: Math.ceil(end / 1000),
    retryAfter: Math.max(1, Math.ceil((end - now) / 1000)),
  };
}

/** State of a refusal for `seconds` from `now`, in Unix milliseconds. */
export const rateRefusal = (options: RateOptions, now: number, seconds: number): RateState =>
  rateState(options, now, { end: now + seconds * 1000, used: rateState(options, now).limit });
