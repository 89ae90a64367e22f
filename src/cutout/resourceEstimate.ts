import { largestCanvas } from '../geometry/compose.ts';
import { decodeBytes } from '../image/decode.ts';
import { encodeBytes } from '../image/encode.ts';
import { SIZE_LIMITS } from '../image/size.ts';
import type { Dimensions, ProbeLimits } from '../image/types.ts';
import type { WorkSize } from '../limits/durationEstimate.ts';
import type { Plan } from './plan.ts';
import { type NetworkSize, networkInput, type Profile } from './profile.ts';

/** What a piece of work takes of the machine, known before a pixel is decoded. */
export interface ResourceEstimate extends WorkSize {
  /** At most, beside the files that were sent. */
  readonly bytes: number;
}

/** Headers, buffers and planes of a size of their own. */
const fixedBytes = 8e6;
/** A pixel of the result: what is worked out about its edges. */
const matteBytes = 1;

/** Of a preview of an image from a screen, the least that is usually asked for. */
export const previewSize = (profile: Profile, network: NetworkSize): WorkSize => ({
  source: 2,
  network: megapixels(networkInput(profile, 'preview', network)),
  result: SIZE_LIMITS.preview / 1e6,
});

/** Most bytes of a plain piece of work: the largest image, of which nothing larger is made. */
export const largestWork = ({ maxPixels }: Pick<ProbeLimits, 'maxPixels'>): number =>
  12 * maxPixels + fixedBytes;

const megapixels = ({ width, height }: Dimensions) => (width * height) / 1e6;

export function estimateResources({
  image,
  background,
  format,
  result,
  decode,
  input,
  geometry,
  ...plan
}: Plan): ResourceEstimate {
  const canvas = largestCanvas(result, {
    ...geometry,
    shadowOpacity: Math.max(...Object.values(plan.shadowOpacity)),
  });
  const canvasPixels = canvas.width * canvas.height;
  const resultPixels = result.width * result.height;
  const bytes =
    decodeBytes(image.probe, decode) +
    // A canvas that the image's buffer has no room for, and the subject on its way to another size.
    (canvasPixels > resultPixels ? 4 * canvasPixels : 0) +
    (geometry.scale === 'original' ? 0 : 4 * resultPixels) +
    (background.kind === 'image' ? decodeBytes(background.probe, canvas) : 0) +
    encodeBytes(format, canvas) +
    matteBytes * resultPixels +
    fixedBytes;
  return {
    source: megapixels(image.probe),
    network: megapixels(input),
    result: megapixels(canvas),
    bytes: Math.ceil(bytes),
  };
}
