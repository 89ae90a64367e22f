import { probe } from '../image/probe.ts';
import type { Probe, ProbeLimits } from '../image/types.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { ImageFetch } from './fetchImage.ts';
import { checkRoi, type Inputs } from './plan.ts';
import type { CutoutRequest } from './request.ts';
import { openSource } from './source.ts';

/** The images of a request as they were sent. */
export interface Sent {
  readonly image: Uint8Array;
  readonly background: Uint8Array | undefined;
  /** What the image's header says, where it had to be read already. */
  readonly probed?: Probe;
}

/** The image's header, and that the region of interest lies within it. */
async function probeImage(request: CutoutRequest, image: Uint8Array, limits: ProbeLimits): Promise<Probe> {
  const probed = await probe(image, limits);
  checkRoi(request, probed);
  return probed;
}

/** Step 1: the uploads, decoded base64 and downloads of a request. Rejects with an AppError or the signal's reason. */
export async function load(
  request: CutoutRequest,
  images: ImageFetch,
  limits: ProbeLimits,
  signal: AbortSignal,
): Promise<Sent> {
  const { source, background } = request;
  const from = { images, maxBytes: limits.maxBytes, signal };
  // Both addresses are checked before either is fetched.
  const readImage = openSource(source, from);
  const readBackground =
    background.kind === 'image' ? openSource(background.source, from, 'bg_image_url') : undefined;
  const image = await readImage();
  // Nothing is fetched for an image that is refused (docs/contract.md section 6).
  const fetches = background.kind === 'image' && background.source.kind === 'url';
  const probed = fetches ? await probeImage(request, image, limits) : undefined;
  return { image, background: await readBackground?.(), ...(probed && { probed }) };
}

/** First half of step 3: reads the headers of what was sent; decodes nothing. Rejects with an AppError or an ImageError. */
export async function probeInputs(
  request: CutoutRequest,
  sent: Sent,
  limits: ProbeLimits,
  telemetry: RequestTelemetry,
): Promise<Inputs> {
  const image = { bytes: sent.image, probe: sent.probed ?? (await probeImage(request, sent.image, limits)) };
  const { width, height, format } = image.probe;
  telemetry.add({
    input: `${width}x${height} ${format}`,
    inputPixels: width * height,
    inputBytes: image.bytes.length,
  });
  const { background: bytes } = sent;
  return { image, background: bytes && { bytes, probe: await probe(bytes, limits) } };
}
