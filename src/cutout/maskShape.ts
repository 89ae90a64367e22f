import type { Dimensions } from '../image/types.ts';

/** Longest side at which a mask is used; larger ones are reduced to it. */
const longestSide = 2048;

/**
 * Whether a mask has the proportions of an image, to a pixel of the mask in each direction: results of this service, which
 * round both sides down, have them.
 */
export const hasShapeOf = (image: Dimensions, mask: Dimensions): boolean =>
  Math.abs(mask.width * image.height - mask.height * image.width) <= image.width + image.height;

/** The size at which a mask is decoded. */
export function maskSize({ width, height }: Dimensions): Dimensions {
  const scale = Math.min(1, longestSide / Math.max(width, height));
  const side = (full: number) => Math.max(1, Math.round(full * scale));
  return { width: side(width), height: side(height) };
}
