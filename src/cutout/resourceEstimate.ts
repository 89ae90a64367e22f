import { largestCanvas } from '../geometry/compose.ts';
import { decodeBytes } from '../image/decode.ts';
import { encodeBytes } from '../image/encode.ts';
import { sizeLimits } from '../image/size.ts';
import type { Dimensions, ProbeLimits } from '../image/types.ts';
import type { WorkSize } from '../limits/durationEstimate.ts';
import { decodedImages, type Plan } from './plan.ts';
import { type NetworkSize, networkInput, type Profile } from './qualityProfile.ts';

/** Resources that a job takes, estimated before a pixel is decoded. */
export interface ResourceEstimate extends WorkSize {
  /** Upper bound in bytes, without the uploads. */
  readonly bytes: number;
}

/** Bytes of headers, buffers and planes that do not depend on the image. */
const fixedBytes = 8e6;
/** Bytes for each pixel of the result during refinement. */
const matteBytes = 1;

/** Bytes of what a mask is compared with at the network's size. */
const maskPlaneBytes = 11e6;

/** Bytes for finding a subject: the networks' runs (223 MB in floats, 173 in bf16; decision 0233), an embedding and its copy. */
const selectionBytes = 260e6;
/** Megapixels of the network's input that take as long as encoding an image. */
const selectionMegapixels = 1.3;

/** The size of a preview of a screen-sized image: the smallest usual job. */
export const typicalPreview = (profile: Profile, network: NetworkSize): WorkSize => ({
  decoded: [{ megapixels: 2, coding: 'jpeg source' }],
  network: megapixels(networkInput(profile, 'preview', network)),
  result: sizeLimits.preview / 1e6,
  encoding: 'png',
});

/** Bytes of the largest job whose result is no larger than its image. */
export const largestJobBytes = ({ maxPixels }: Pick<ProbeLimits, 'maxPixels'>): number =>
  12 * maxPixels + fixedBytes;

const megapixels = ({ width, height }: Dimensions) => (width * height) / 1e6;

/**
 * What a finished job has done: its estimate with the pixels that were refined, or those of the result if they are more,
 * and with those that were encoded. A crop may give far fewer than the bound that was reserved for it.
 */
export const finishedWork = ({ result }: Plan, estimate: WorkSize, size: Dimensions): WorkSize => ({
  ...estimate,
  result: Math.max(megapixels(result), megapixels(size)),
  encoded: megapixels(size),
});

export function estimateResources(plan: Plan): ResourceEstimate {
  const { image, background, mask, prompt, format, result, decode, input, geometry } = plan;
  const canvas = largestCanvas(result, {
    ...geometry,
    shadowOpacity: Math.max(...Object.values(plan.shadowOpacity)),
  });
  const canvasPixels = canvas.width * canvas.height;
  const resultPixels = result.width * result.height;
  const bytes =
    decodeBytes(image.probe, decode, image.bytes) +
    // A canvas larger than the image's buffer, and the subject while it is scaled.
    (canvasPixels > resultPixels ? 4 * canvasPixels : 0) +
    (geometry.scale === 'original' ? 0 : 4 * resultPixels) +
    (background.kind === 'image' ? decodeBytes(background.probe, canvas, background.bytes) : 0) +
    (mask ? decodeBytes(mask.probe, mask.size, mask.bytes) + maskPlaneBytes : 0) +
    (prompt ? selectionBytes + maskPlaneBytes : 0) +
    encodeBytes(format, canvas) +
    matteBytes * resultPixels +
    fixedBytes;
  return {
    decoded: decodedImages(plan).map(({ probe }) => ({
      megapixels: megapixels(probe),
      coding: probe.progressive ? 'progressive source' : `${probe.format} source`,
    })),
    network: megapixels(input) + (prompt ? selectionMegapixels : 0),
    result: megapixels(canvas),
    encoding: format === 'webp' && plan.lossless ? 'lossless webp' : format,
    bytes: Math.ceil(bytes),
  };
}
