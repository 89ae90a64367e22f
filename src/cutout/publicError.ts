import { fail } from '../errors.ts';
import { ImageError } from '../image/errors.ts';

/** Errors of the parts below, in the words of the contract; the caller's own reason when it gave up. */
export function publicError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof ImageError) return fail(error.code, { detail: error.detail, cause: error.cause });
  return error;
}
