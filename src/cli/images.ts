import type { Config } from '../config.ts';
import { configureLibvips } from '../image/libvips.ts';
import { CONTRACT_LIMITS, type ProbeLimits } from '../image/types.ts';

/** What may be sent: the contract's types and those the operator allows. Blocks all other loaders. */
export function configureImages(config: Config): ProbeLimits {
  const formats = [...CONTRACT_LIMITS.formats, ...config.inputFormats];
  configureLibvips({ formats });
  return { ...CONTRACT_LIMITS, formats };
}
