import { fail } from '../errors.ts';
import { roiFault } from '../geometry/roi.ts';
import { probe } from '../image/probe.ts';
import type { Probe, ProbeLimits } from '../image/types.ts';
import type { JobWatch } from '../limits/pixelJobs.ts';
import type { CutoutRequest } from './request.ts';

/**
 * Reads the image's header and checks that the region of interest lies within the upright image. Rejects with an ImageError,
 * `roi_exceeds_bounds` or `roi_region_empty`.
 */
export async function probeImage(
  { roi }: Pick<CutoutRequest, 'roi'>,
  image: Uint8Array,
  limits: ProbeLimits,
  watch?: JobWatch,
): Promise<Probe> {
  const probed = await probe(image, limits, watch);
  const fault = roiFault(roi, probed);
  if (fault) throw fail(fault);
  return probed;
}
