import type { Probe, ProbeLimits } from '../image/types.ts';
import type { ImageFetch } from './fetchImage.ts';
import { openSource } from './openSource.ts';
import { probeImage } from './probeImage.ts';
import type { CutoutRequest } from './request.ts';

/** The images of a request as they were sent. */
export interface Sent {
  readonly image: Uint8Array;
  readonly background: Uint8Array | undefined;
  /** What the image's header says, where it had to be read already. */
  readonly probed?: Probe;
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
