import { probe } from '../image/probe.ts';
import type { ProbeLimits } from '../image/types.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { Loaded } from './load.ts';
import type { Inputs } from './plan.ts';
import { probeImage } from './probeImage.ts';
import type { CutoutRequest } from './request.ts';

/** First half of step 3: reads the headers of what was sent; decodes nothing. Rejects with an AppError or an ImageError. */
export async function probeInputs(
  request: CutoutRequest,
  loaded: Loaded,
  limits: ProbeLimits,
  telemetry: RequestTelemetry,
): Promise<Inputs> {
  const { image: sent, background: bytes, probed } = loaded;
  const image = { bytes: sent, probe: probed ?? (await probeImage(request, sent, limits)) };
  const { width, height, format } = image.probe;
  telemetry.add({
    input: `${width}x${height} ${format}`,
    inputPixels: width * height,
    inputBytes: image.bytes.length,
  });
  return { image, background: bytes && { bytes, probe: await probe(bytes, limits) } };
}
