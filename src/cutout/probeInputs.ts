import { fail } from '../errors.ts';
import { probe } from '../image/probe.ts';
import type { Dimensions, ProbeLimits } from '../image/types.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { Loaded } from './load.ts';
import { withMaskErrors } from './maskError.ts';
import { hasShapeOf } from './maskShape.ts';
import type { EncodedImage, Inputs } from './plan.ts';
import { probeImage } from './probeImage.ts';
import type { CutoutRequest } from './request.ts';

/** Rejects with `mask_shape_mismatch` for a mask that does not have the proportions of the image. */
async function probeMask(bytes: Uint8Array, image: Dimensions, limits: ProbeLimits): Promise<EncodedImage> {
  const probed = await withMaskErrors(probe(bytes, limits));
  if (!hasShapeOf(image, probed)) {
    const size = ({ width, height }: Dimensions) => `${width} x ${height}`;
    throw fail('mask_shape_mismatch', {
      detail: `The upright image has ${size(image)} pixels and the mask ${size(probed)}. Send a mask with the proportions of the image, at any size.`,
    });
  }
  return { bytes, probe: probed };
}

/** First half of step 3: reads the headers of what was sent; decodes nothing. Rejects with an AppError or an ImageError. */
export async function probeInputs(
  request: CutoutRequest,
  loaded: Loaded,
  limits: ProbeLimits,
  telemetry: RequestTelemetry,
): Promise<Inputs> {
  const { image: sent, background: bytes, mask, probed } = loaded;
  const image = { bytes: sent, probe: probed ?? (await probeImage(request, sent, limits)) };
  const { width, height, format } = image.probe;
  telemetry.add({
    input: `${width}x${height} ${format}`,
    inputPixels: width * height,
    inputBytes: image.bytes.length,
    ...(mask && { guidance: 'mask' }),
  });
  const background = bytes && { bytes, probe: await probe(bytes, limits) };
  return { image, background, mask: mask && (await probeMask(mask, image.probe, limits)) };
}
