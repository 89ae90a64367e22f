import { DIMENSIONS_UNREADABLE, ImageError } from './errors.ts';
import type { Dimensions, ProbeLimits } from './types.ts';

/** Throws ImageError for sides that are no sides, and for more pixels than the limit. */
export function assertDimensions(
  { width, height }: Dimensions,
  { maxPixels }: Pick<ProbeLimits, 'maxPixels'>,
): void {
  const legal = (side: number) => Number.isSafeInteger(side) && side >= 1;
  if (!legal(width) || !legal(height)) throw new ImageError('invalid_dimensions', DIMENSIONS_UNREADABLE);
  if (width * height <= maxPixels) return;
  const megapixels = Math.ceil((width * height) / 1e6);
  throw new ImageError(
    'resolution_too_high',
    `Input image has ${megapixels} megapixels, maximum supported input resolution is ${maxPixels / 1e6} megapixels`,
  );
}
