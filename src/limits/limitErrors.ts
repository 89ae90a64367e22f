import { type AppError, fail, type Reason, unavailable } from '../errors.ts';
import type { RateState } from './rate.ts';
import { type Busy, retrySeconds } from './retryAfter.ts';

/** 429 of a limit that has no window. `retryAfter` in whole seconds. */
export const limitReached = (
  detail: string,
  why: { readonly reason?: Reason; readonly retryAfter: number; readonly window?: RateState },
): AppError => fail('rate_limit_exceeded', { detail, ...why });

/** 429. `retryAfter` in whole seconds; default: that of the window. */
export const tooMany = (
  window: RateState,
  detail: string,
  { reason = 'rate', retryAfter = window.retryAfter }: { reason?: Reason; retryAfter?: number } = {},
): AppError => limitReached(detail, { reason, retryAfter, window });

/** 429 for an account of which a job holds a thread for much longer than its image explains. */
export const jobOverdue = (state: RateState): AppError =>
  tooMany(state, 'An earlier image of this account takes too long. Try again when it has ended.', {
    reason: 'concurrency',
    retryAfter: retrySeconds.overdueJob,
  });

/** 429 for an account whose window is used up. */
export const windowUsedUp = (state: RateState): AppError =>
  tooMany(state, `All ${state.limit} megapixels of this minute are used up.`);

/** 503 under overload. */
export const overloaded = ({ why, retryAfter }: Busy): AppError =>
  unavailable(
    why,
    why === 'queue'
      ? 'Too many requests are waiting. Try again.'
      : 'The server is too busy to answer this request within its time limit. Try again.',
    { retryAfter },
  );

/** 503 without memory for a body or a download. */
export const outOfMemory = (cause?: unknown): AppError =>
  unavailable('memory', 'The memory of the server is used by other requests. Try again.', {
    cause,
    retryAfter: retrySeconds.memory,
  });

/** 400 for an image that needs more memory than there can ever be: trying again cannot help. */
export const tooLarge = (): AppError =>
  fail('resolution_too_high', {
    detail:
      'The largest result that this image and its options may have needs more memory than the server may use. Send a smaller image, or no crop and no shadow.',
  });

/** 503 while all accounts together download as many images as they may. */
export const tooManyDownloads = (): AppError =>
  unavailable('downloads', 'Too many images are being downloaded. Try again.', {
    retryAfter: retrySeconds.downloads,
  });

/** 429 after failed attempts; `what` failed, `wait` in whole seconds. */
export const tooManyAttempts = (what: string, wait: number): AppError =>
  fail('rate_limit_exceeded', {
    reason: 'attempts',
    detail: `Too many ${what} from this address. Try again in ${wait} seconds.`,
    retryAfter: wait,
  });
