import { AppError, fail } from '../errors.ts';
import { ImageError } from '../image/errors.ts';

/** Codes that say the same about every file. */
const shared: ReadonlySet<string> = new Set(['file_too_large', 'timeout']);

function maskErrorOf(error: unknown): unknown {
  if (error instanceof ImageError && !shared.has(error.code))
    return fail('invalid_mask_file', { detail: error.detail, cause: error.cause });
  if (error instanceof AppError && error.id === 'failed_to_read_image')
    return fail('invalid_mask_file', { detail: error.detail, cause: error.cause });
  return error;
}

/** Work on the mask of a request, which rejects with `invalid_mask_file` where the same of its image would name the image. */
export async function withMaskErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw maskErrorOf(error);
  }
}
