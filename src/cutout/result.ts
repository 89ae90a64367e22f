import type { QuarterCredits } from '../billing/price.ts';
import type { Box } from '../engine/types.ts';
import type { Cacheable } from '../idempotency/codec.ts';
import { type Encoded, formats } from '../image/encode.ts';
import type { Dimensions } from '../image/types.ts';
import type { RequestAttributes, Stages } from '../ops/telemetry.ts';

/** A finished result, as it is cached for repeats. Shared between answers; must not be changed. */
export interface CachedResult extends Encoded, Dimensions, Cacheable {
  readonly bytes: Buffer;
  /** Size that `size=full` would give. */
  readonly max: Dimensions;
  /** Box of the subject in the result. */
  readonly foreground: Box;
  /** X-Type: the subject named or classified, at the requested level; undefined for level `none`. */
  readonly type: string | undefined;
  /** X-Uncertainty-Score: the chance that a person has to look at the result (uncertaintyScore.ts); -1: not known. */
  readonly uncertainty: number;
  readonly charged: QuarterCredits;
  readonly stages: Stages;
}

/** What the log says about a result. */
export const resultAttributes = ({
  width,
  height,
  contentType,
  bytes,
  uncertainty,
}: Encoded & Dimensions & Pick<CachedResult, 'uncertainty'>): RequestAttributes => ({
  result: `${width}x${height} ${formats.get(contentType)}`,
  resultPixels: width * height,
  resultBytes: bytes.length,
  ...(uncertainty >= 0 && { uncertainty }),
});
