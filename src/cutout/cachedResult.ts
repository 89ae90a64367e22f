import type { QuarterCredits } from '../billing/price.ts';
import type { Box } from '../engine/types.ts';
import type { Cacheable } from '../idempotency/codec.ts';
import type { Encoded } from '../image/encode.ts';
import type { Dimensions } from '../image/types.ts';
import type { Stages } from '../ops/telemetry.ts';

/** What a first call makes and a repeated one gets again. Shared, never changed. */
export interface CachedResult extends Encoded, Dimensions, Cacheable {
  readonly bytes: Buffer;
  /** What `size=full` would give. */
  readonly max: Dimensions;
  /** Box of the subject in the result. */
  readonly foreground: Box;
  /** Kind of subject, in the words of the level asked for; absent when not asked for. */
  readonly type: string | undefined;
  readonly charged: QuarterCredits;
  readonly stages: Stages;
}
