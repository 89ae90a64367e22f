import type { Probe, ProbeLimits } from '../image/types.ts';
import type { JobWatch } from '../limits/pixelJobs.ts';
import type { ImageDownloads } from './imageDownloads.ts';
import { type Loaded, probeImage } from './probeInputs.ts';
import { withMaskErrors } from './publicError.ts';
import { readSource } from './readSource.ts';
import { type CutoutRequest, settingsOf } from './request.ts';

interface LoadParts {
  /**
   * The second network of this installation: results with and without one differ. While it is still fetched, results are those
   * of the first one under the same name, so that a repeated request is the same content before and after.
   */
  readonly second?: { readonly name: string } | undefined;
  readonly limits: ProbeLimits;
  readonly watch: JobWatch;
}

/** Step 1: reads uploads, base64 and addresses. Rejects with an AppError, an ImageError or the signal's reason. */
export async function load(
  request: CutoutRequest,
  downloads: ImageDownloads,
  { limits, second, watch }: LoadParts,
  signal: AbortSignal,
): Promise<Loaded> {
  const { source, mask } = request;
  const background = request.background.kind === 'image' ? request.background.source : undefined;
  // Both addresses are checked before either is fetched.
  if (source.kind === 'url') downloads.check(source.url, 'image_url');
  if (background?.kind === 'url') downloads.check(background.url, 'bg_image_url');
  const from = { downloads, maxBytes: limits.maxBytes, signal };
  const image = await readSource(source, from);
  let probed: Promise<Probe> | undefined;
  const header = () => {
    probed ??= probeImage(request, image, limits, watch);
    return probed;
  };
  // Nothing is fetched for an image that is refused (docs/contract.md section 6).
  if (background?.kind === 'url') await header();
  return {
    image,
    background: background && (await readSource(background, from, 'bg_image_url')),
    ...(mask && { mask: await withMaskErrors(readSource(mask, from)) }),
    settings: settingsOf(request, second?.name),
    header,
    watch,
  };
}
