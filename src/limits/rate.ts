/** Values of the rate headers and Retry-After (docs/contract.md section 11). */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Unix time in whole seconds, never before the window is really over. */
  readonly reset: number;
  /** Whole seconds until the reset, at least 1. */
  readonly retryAfter: number;
}

export interface RateTicket {
  /** The call failed and counts nothing. Once; later calls change nothing. Never rejects. */
  giveBack(): Promise<void>;
}

export type RateOutcome =
  | { readonly outcome: 'taken'; readonly ticket: RateTicket }
  | { readonly outcome: 'refused'; readonly state: RateState };

export interface RateOptions {
  /** Megapixels an account may send in one window; 0 = no limit. */
  readonly megapixels: number;
  readonly windowSeconds: number;
}

/**
 * Megapixels a window and account. The window starts with its first counted call and is fixed; a call that
 * does not fit is refused and consumes nothing; a failed one gives back what it took, its window included if
 * it was the only one. docs/decisions/0056 says why this is not a library, 0145 how nodes share it.
 */
export interface RateLimit {
  /** False: everything goes through. */
  readonly limited: boolean;
  /** For headers: where it cannot be known, that of a fresh window. Never rejects. */
  state(account: string): Promise<RateState>;
  /** For headers, where a call is refused before its account is known: nothing is left for so many seconds. */
  refusal(seconds: number): RateState;
  /** The state to refuse a call with before it is even read; undefined while anything is left. */
  usedUp(account: string): Promise<RateState | undefined>;
  /** `pixels` of the upright input. An image beyond the whole limit takes all of a fresh window. */
  take(account: string, pixels: number): Promise<RateOutcome>;
}

/** What is told where there is no limit: clients fail on a missing number, and divide by this one safely. */
const unlimited = 1_000_000;

/** What an image of so many pixels takes of a window. */
export const rateCost = ({ megapixels }: Pick<RateOptions, 'megapixels'>, pixels: number): number =>
  Math.min(megapixels, Math.max(1, Math.ceil(pixels / 1e6)));

/** `end` of the window and `now` in Unix milliseconds of one clock; without a window, that of the next call. */
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

/** A refusal for `seconds` from `now`, in Unix milliseconds, whoever asked. */
export const rateRefusal = (options: RateOptions, now: number, seconds: number): RateState =>
  rateState(options, now, { end: now + seconds * 1000, used: rateState(options, now).limit });
