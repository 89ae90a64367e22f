import { probe } from '../image/probe.ts';
import type { Probe, ProbeLimits } from '../image/types.ts';
import { checkRoi } from './plan.ts';
import type { CutoutRequest } from './request.ts';

/** Reads the image's header and checks that the region of interest lies within the image. */
export async function probeImage(
  request: CutoutRequest,
  image: Uint8Array,
  limits: ProbeLimits,
): Promise<Probe> {
  const probed = await probe(image, limits);
  checkRoi(request, probed);
  return probed;
}
