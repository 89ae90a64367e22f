import type { CutoutConfig } from '../config/cutout.ts';
import { configureLibvips } from '../image/libvips.ts';
import { CONTRACT_LIMITS, type ProbeLimits } from '../image/types.ts';

/**
 * Limits of the images that may be sent: the contract's formats and those that the operator enables. Blocks
 * all other loaders of libvips.
 */
export function configureImages({ inputFormats }: Pick<CutoutConfig, 'inputFormats'>): ProbeLimits {
  const formats = [...CONTRACT_LIMITS.formats, ...inputFormats];
  configureLibvips({ formats });
  return { ...CONTRACT_LIMITS, formats };
}
