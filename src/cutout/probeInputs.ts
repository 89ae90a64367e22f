import { fail } from '../errors.ts';
import { roiFault } from '../geometry/roi.ts';
import { promptFault, type SubjectPrompt } from '../geometry/subjectPrompt.ts';
import type { Content } from '../idempotency/idempotency.ts';
import { hasShapeOf } from '../image/mask.ts';
import { probe } from '../image/probe.ts';
import type { Dimensions, Probe, ProbeLimits } from '../image/types.ts';
import type { JobWatch } from '../limits/pixelJobs.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { EncodedImage, Inputs } from './plan.ts';
import { withMaskErrors } from './publicError.ts';
import type { CutoutRequest } from './request.ts';
import type { SubjectSelection } from './subjectSelection.ts';

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

/** The images of a request, as they were sent, and the text of its options. */
export interface Loaded extends Content {
  /** What the image's header says, read once: before a background is downloaded, or in step 3. Rejects as `probeImage`. */
  readonly header: () => Promise<Probe>;
  /** Times the reading of headers. */
  readonly watch: JobWatch;
}

interface InputParts {
  readonly limits: ProbeLimits;
  /** Absent: points and boxes are refused. */
  readonly selection?: Pick<SubjectSelection, 'available'> | undefined;
}

/** Rejects with `mask_shape_mismatch` for a mask that does not have the proportions of the image. */
async function probeMask(
  bytes: Uint8Array,
  image: Dimensions,
  limits: ProbeLimits,
  watch: JobWatch,
): Promise<EncodedImage> {
  const probed = await withMaskErrors(probe(bytes, limits, watch));
  if (!hasShapeOf(image, probed)) {
    const size = ({ width, height }: Dimensions) => `${width} x ${height}`;
    throw fail('mask_shape_mismatch', {
      detail: `The upright image has ${size(image)} pixels and the mask ${size(probed)}. Send a mask with the proportions of the image, at any size.`,
    });
  }
  return { bytes, probe: probed };
}

/** Rejects with `invalid_subject_points`, `invalid_subject_box` or `subject_selection_unavailable`. */
async function checkPrompt(
  prompt: SubjectPrompt,
  image: Dimensions,
  selection: Pick<SubjectSelection, 'available'> | undefined,
): Promise<void> {
  const fault = promptFault(prompt, image);
  if (fault) throw fail(fault.id, { detail: fault.detail });
  if (!(await selection?.available())) throw fail('subject_selection_unavailable');
}

const guidanceBy = ({ box }: SubjectPrompt) => (box ? 'box' : 'points');

/** Reads the headers of what was sent, the first half of step 3. Rejects with an AppError or an ImageError. */
export async function probeInputs(
  request: CutoutRequest,
  { image: bytes, background, mask, header, watch }: Loaded,
  { limits, selection }: InputParts,
  telemetry: RequestTelemetry,
): Promise<Inputs> {
  const image = { bytes, probe: await header() };
  const { width, height, format } = image.probe;
  telemetry.add({
    input: `${width}x${height} ${format}`,
    inputPixels: width * height,
    inputBytes: image.bytes.length,
    ...(mask && { guidance: 'mask' }),
    ...(request.prompt && { guidance: guidanceBy(request.prompt) }),
  });
  if (request.prompt) await checkPrompt(request.prompt, image.probe, selection);
  return {
    image,
    background: background && { bytes: background, probe: await probe(background, limits, watch) },
    mask: mask && (await probeMask(mask, image.probe, limits, watch)),
  };
}
