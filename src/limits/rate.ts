import type { RateWindow } from '../errors.ts';
import { once } from './retained.ts';

/** Values of the rate headers and Retry-After (docs/contract.md section 11). */
export interface RateState extends RateWindow {
  /** Whole seconds until the reset, at least 1. */
  readonly retryAfter: number;
}

export interface RateTicket {
  /** Returns what a failed call took to the window. Only the first call has an effect. Never rejects. */
  release(): Promise<void> | undefined;
}

export type RateOutcome =
  | { readonly outcome: 'taken'; readonly ticket: RateTicket }
  | { readonly outcome: 'refused'; readonly state: RateState };

export interface RateOptions {
  /** Megapixels that an account may send in one window, or attempts in which a source may fail; 0: no limit. */
  readonly limit: number;
  readonly windowSeconds: number;
}

/** A window after a call that asked for a share of it. */
export interface Share {
  /** False if it does not fit; then nothing was taken. */
  readonly taken: boolean;
  readonly state: RateState;
  /** Returns what was taken. Called once at most; never rejects. */
  readonly release: () => Promise<void>;
}

/**
 * Rate limit in megapixels per account and window, which starts with its first counted call. A call that does not fit
 * is refused and consumes nothing; a failed one gives back what it took, and the window if it was alone. decision
 * 0056 says why this is no library, 0145 how nodes share it.
 */
export abstract class RateLimit {
  protected readonly options: RateOptions;
  readonly #now: () => number;

  /** `now` returns Unix milliseconds. */
  constructor(options: RateOptions, now: () => number) {
    this.options = options;
    this.#now = now;
  }

  /** False: every call is accepted. */
  get limited(): boolean {
    return this.options.limit > 0;
  }

  /** The window's state for headers; that of a fresh window if it cannot be known. Never rejects. */
  async state(account: string): Promise<RateState> {
    const fresh = rateState(this.options, this.#now());
    if (!this.limited) return fresh;
    return this.share(account, 0).then(
      ({ state }) => state,
      () => fresh,
    );
  }

  /** State for headers of a refusal before the account is known: nothing left for `seconds`. */
  refusal(seconds: number): RateState {
    const now = this.#now();
    const { limit } = rateState(this.options, now);
    return rateState(this.options, now, { end: now + seconds * 1000, used: limit });
  }

  /** The state to refuse a call with before its body is read; undefined while anything is left. */
  async usedUpState(account: string): Promise<RateState | undefined> {
    if (!this.limited) return undefined;
    const { state } = await this.share(account, 0);
    return state.remaining === 0 ? state : undefined;
  }

  /** `pixels` of everything that the call decodes. One that needs more than the limit takes all of a fresh window. */
  async take(account: string, pixels: number): Promise<RateOutcome> {
    if (!this.limited) return { outcome: 'taken', ticket: { release: async () => {} } };
    const { taken, state, release } = await this.share(account, rateCost(this.options, pixels));
    return taken ? { outcome: 'taken', ticket: { release: once(release) } } : { outcome: 'refused', state };
  }

  /** Takes so much of the window of that name; 0 only reads it. */
  abstract share(name: string, cost: number): Promise<Share>;
}

/** Reported where there is no limit: clients fail on a missing number and may divide by it. */
const unlimited = 1_000_000;

/** Megapixels that an image counts, at most the whole window. */
export const rateCost = ({ limit }: Pick<RateOptions, 'limit'>, pixels: number): number =>
  Math.min(limit, Math.max(1, Math.ceil(pixels / 1e6)));

/** `end` of the window and `now`: Unix milliseconds of one clock; without a window, the state of a fresh one. */
export function rateState(
  { limit: most, windowSeconds }: RateOptions,
  now: number,
  window?: { readonly end: number; readonly used: number },
): RateState {
  const end = window?.end ?? now + windowSeconds * 1000;
  const limit = most === 0 ? unlimited : most;
  return {
    limit,
    remaining: limit - (window?.used ?? 0),
    reset: Math.ceil(end / 1000),
    retryAfter: Math.max(1, Math.ceil((end - now) / 1000)),
  };
}
