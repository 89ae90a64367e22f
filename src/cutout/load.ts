import type { Content } from '../idempotency/idempotency.ts';
import type { Probe, ProbeLimits } from '../image/types.ts';
import type { ImageFetch } from './fetchImage.ts';
import { openSource } from './openSource.ts';
import { probeImage } from './probeImage.ts';
import { type CutoutRequest, settingsOf } from './request.ts';

/** A request with its images, as they were sent. */
export interface Loaded extends Content {
  /** What the image's header says, where it had to be read already. */
  readonly probed?: Probe;
}

/**
 * Step 1: reads the uploads, decodes base64 and downloads the addresses of a request. Rejects with an AppError, an
 * ImageError or the signal's reason.
 */
export async function load(
  request: CutoutRequest,
  images: ImageFetch,
  limits: ProbeLimits,
  signal: AbortSignal,
): Promise<Loaded> {
  const endUse = images.use();
  try {
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
    return {
      image,
      background: await readBackground?.(),
      settings: settingsOf(request),
      ...(probed && { probed }),
    };
  } finally {
    await endUse();
  }
}
