import { AppError, fail } from '../errors.ts';
import { ImageError } from '../image/errors.ts';

/** Returns an error of the parts below in the words of the contract, or the caller's own reason where it gave up. */
export function publicError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof ImageError) return fail(error.code, { detail: error.detail, cause: error.cause });
  return error;
}

/** Codes that say the same about every file. */
const sharedCodes: ReadonlySet<string> = new Set(['file_too_large', 'timeout']);

/** Whether an error is about what the file contains, so that its code has to name the file. */
const isOfFile = (error: unknown): error is ImageError | AppError =>
  (error instanceof ImageError && !sharedCodes.has(error.code)) ||
  (error instanceof AppError && error.id === 'failed_to_read_image');

/** Does work on the mask of a request; rejects with `invalid_mask_file` where the same of its image would name the image. */
export async function withMaskErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isOfFile(error)) throw error;
    throw fail('invalid_mask_file', { detail: error.detail, cause: error.cause });
  }
}
