import { maxMegapixels } from '../inputLimits.ts';
import type { Dimensions } from './types.ts';

/** Sizes of a result; aliases and `auto` are resolved before (docs/contract.md section 5). */
export type SizeName = 'preview' | 'medium' | 'hd' | 'full' | '50MP';

/**
 * The maximum number of pixels of a result, for each size. What else depends on the size of one request: cutout/plan.ts
 * (`makePlan`). `size=auto` is decided by the balance when it is reserved (`tierFor` in billing/settlement.ts), and how large
 * the network sees a preview by CUTOUT_PROFILE (cutout/qualityProfile.ts).
 */
export const sizeLimits: Readonly<Record<SizeName, number>> = {
  preview: 250_000,
  medium: 1_500_000,
  hd: 4_000_000,
  full: 25_000_000,
  '50MP': maxMegapixels * 1e6,
};

/**
 * floor(side * sqrt(limit / (side * other))) = floor(sqrt(limit * side / other)), without rounding errors:
 * all products stay below 2^53 for limits and areas up to 50 MP.
 */
function reducedSide(side: number, other: number, limit: number): number {
  let result = Math.floor(Math.sqrt((limit * side) / other));
  while (result * result * other > limit * side) result -= 1;
  while ((result + 1) * (result + 1) * other <= limit * side) result += 1;
  return Math.max(1, result);
}

/** Size of the result for an upright source: never enlarged, at most `limit` pixels, sides rounded down, at least 1. */
export function resultSize(source: Dimensions, limit: number): Dimensions {
  const { width, height } = source;
  if (width * height <= limit) return { width, height };
  return { width: reducedSide(width, height, limit), height: reducedSide(height, width, limit) };
}

/**
 * Size to decode at: the result's, unless it is below the network's input in a direction where the source has
 * more pixels, in which case the matte would lose detail. Keeps the source's aspect ratio.
 */
export function decodeSize(source: Dimensions, result: Dimensions, network: Dimensions): Dimensions {
  const enough =
    result.width >= Math.min(source.width, network.width) &&
    result.height >= Math.min(source.height, network.height);
  if (enough) return result;
  const scale = Math.min(1, Math.max(network.width / source.width, network.height / source.height));
  const side = (full: number, atLeast: number) => Math.min(full, Math.max(atLeast, Math.ceil(full * scale)));
  return { width: side(source.width, result.width), height: side(source.height, result.height) };
}
