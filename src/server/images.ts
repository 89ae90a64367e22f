import type { CutoutConfig } from '../config/cutout.ts';
import { configureLibvips } from '../image/libvips.ts';
import { CONTRACT_LIMITS, type ProbeLimits } from '../image/types.ts';

/** What may be sent: the contract's types and those the operator allows. Blocks all other loaders. */
export function configureImages({ inputFormats }: Pick<CutoutConfig, 'inputFormats'>): ProbeLimits {
  const formats = [...CONTRACT_LIMITS.formats, ...inputFormats];
  configureLibvips({ formats });
  return { ...CONTRACT_LIMITS, formats };
}
