import type { CutoutConfig } from '../config/cutout.ts';
import { UserError } from '../errors.ts';
import { NoThreadError } from '../image/errors.ts';
import { configureLibvips, tryLibvips } from '../image/libvips.ts';
import { contractLimits, optionalFormats, type ProbeLimits } from '../image/types.ts';

/** Returns the limits of images with the contract's formats and those that the operator enables. Blocks all other loaders of libvips. */
export function configureImages({ inputFormats }: Pick<CutoutConfig, 'inputFormats'>): ProbeLimits {
  const formats = [...contractLimits.formats, ...inputFormats];
  configureLibvips({ formats });
  return { ...contractLimits, formats };
}

/** Limits of local files: every format that can be read. */
export const configureLocalImages = (): ProbeLimits => configureImages({ inputFormats: optionalFormats });

/** Throws UserError where the system does not start the threads that images need. */
export async function assertImageThreads(): Promise<void> {
  await tryLibvips().catch((error: unknown) => {
    if (!(error instanceof NoThreadError)) throw error;
    throw new UserError(
      `The system does not start the threads that images need: ${error.message.trim()}. Raise the limit of threads (ulimit -u, pids.max).`,
    );
  });
}
