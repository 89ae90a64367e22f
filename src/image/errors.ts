import { maxImageSide } from '../inputLimits.ts';
import type { Dimensions, ProbeLimits } from './types.ts';

/** Codes of docs/contract.md section 10; the caller adds status and title. */
type ImageErrorCode =
  | 'invalid_file_type'
  | 'invalid_dimensions'
  | 'resolution_too_high'
  | 'file_too_large'
  | 'failed_to_read_image'
  | 'invalid_format'
  | 'timeout';

/** An error of the image itself: `detail` is public, `cause` is for the log only. */
export class ImageError extends Error {
  override readonly name = 'ImageError';
  readonly code: ImageErrorCode;
  readonly detail: string;

  constructor(code: ImageErrorCode, detail: string, cause?: unknown) {
    super(detail, cause === undefined ? undefined : { cause });
    this.code = code;
    this.detail = detail;
  }
}

/** The error for a file whose pixels cannot be had. */
export const cannotRead = (detail: string, cause?: unknown): ImageError =>
  new ImageError('failed_to_read_image', detail, cause);

/** The system starts no more threads for this process (`ulimit -u`, pids.max). The image is not the reason. */
export class NoThreadError extends Error {
  override readonly name = 'NoThreadError';
  readonly code = 'IMAGE_NO_THREAD';
}

/** Texts of glib, libaom and libheif. */
const noThread = /creating thread|thread creation failed/i;

/** NoThreadError where the text of libvips says so, else the error itself. */
export const orNoThread = (error: unknown): unknown =>
  error instanceof Error && noThread.test(error.message)
    ? new NoThreadError(error.message, { cause: error })
    : error;

export const dimensionsUnreadable = 'The dimensions of the given image could not be read.';
export const otherSize = 'The image does not have the size its header announces.';
export const cutShort = 'The file ends before the image is complete.';

/**
 * libvips' errors have texts and no codes, and under load a text can be missing or belong to another job.
 * They therefore only refine the sentence, never the decision; but a thread that is missing is never the image's fault
 * (`orNoThread`). First match wins; test/image/errors.test.ts
 * provokes every row with real bytes, which detects a libvips with other texts.
 */
export const libvipsErrors: readonly (readonly [text: RegExp, code: ImageErrorCode, detail: string])[] = [
  [/^Input Buffer is empty/i, 'failed_to_read_image', 'The file is empty.'],
  [/unsupported image format/, 'failed_to_read_image', 'The file is not an image that can be read.'],
  [/exceeds pixel limit/, 'resolution_too_high', 'The image has more pixels than its header may announce.'],
  [/corrupt header/, 'invalid_dimensions', dimensionsUnreadable],
  [/premature end/, 'failed_to_read_image', cutShort],
  [
    /read error|unable to (?:parse|read|decode)/,
    'failed_to_read_image',
    'The file is damaged or incomplete.',
  ],
];

/** The ImageError for an error of libvips; `failed_to_read_image` if no row of the table matches. */
export function imageErrorFrom(error: unknown): ImageError | NoThreadError {
  if (error instanceof ImageError || error instanceof NoThreadError) return error;
  const text = error instanceof Error ? error.message : String(error);
  const [, code, detail] = libvipsErrors.find(([candidate]) => candidate.test(text)) ?? [];
  return code && detail
    ? new ImageError(code, detail, error)
    : cannotRead('The image data could not be decoded.', error);
}

/** Throws ImageError for sides that are no sides, for more pixels than the limit, and for longer sides than `maxImageSide`. */
export function assertDimensions(
  { width, height }: Dimensions,
  { maxPixels }: Pick<ProbeLimits, 'maxPixels'>,
): void {
  const legal = (side: number) => Number.isSafeInteger(side) && side >= 1;
  if (!legal(width) || !legal(height)) throw new ImageError('invalid_dimensions', dimensionsUnreadable);
  const tooHigh = (text: string) => new ImageError('resolution_too_high', `Input image has ${text}`);
  if (width * height > maxPixels)
    throw tooHigh(
      `${Math.ceil((width * height) / 1e6)} megapixels, maximum supported input resolution is ${maxPixels / 1e6} megapixels`,
    );
  if (Math.max(width, height) > maxImageSide)
    throw tooHigh(
      `${width} × ${height} pixels, a side may have at most ${maxImageSide}. Scale the image down or cut it.`,
    );
}
