import { MAX_SIDE } from '../inputLimits.ts';
import { DIMENSIONS_UNREADABLE, ImageError } from './errors.ts';
import type { Dimensions, ProbeLimits } from './types.ts';

/** Throws ImageError for sides that are no sides, for more pixels than the limit, and for longer sides than `MAX_SIDE`. */
export function assertDimensions(
  { width, height }: Dimensions,
  { maxPixels }: Pick<ProbeLimits, 'maxPixels'>,
): void {
  const legal = (side: number) => Number.isSafeInteger(side) && side >= 1;
  if (!legal(width) || !legal(height)) throw new ImageError('invalid_dimensions', DIMENSIONS_UNREADABLE);
  if (width * height > maxPixels) {
    const megapixels = Math.ceil((width * height) / 1e6);
    throw new ImageError(
      'resolution_too_high',
      `Input image has ${megapixels} megapixels, maximum supported input resolution is ${maxPixels / 1e6} megapixels`,
    );
  }
  if (Math.max(width, height) > MAX_SIDE) {
    throw new ImageError(
      'resolution_too_high',
      `Input image has ${width} × ${height} pixels, a side may have at most ${MAX_SIDE}. Scale the image down or cut it.`,
    );
  }
}
