import type { Tier } from '../billing/price.ts';
import type { ReserveRequest } from '../billing/reservation.ts';
import type { Box } from '../engine/types.ts';
import { fail } from '../errors.ts';
import type { Geometry } from '../geometry/compose.ts';
import { roiBox, roiFault, WHOLE_IMAGE } from '../geometry/roi.ts';
import { dropShadowOpacities, type Subject } from '../geometry/shadow.ts';
import { decodeSize, resultSize, SIZE_LIMITS, type SizeName } from '../image/size.ts';
import type { Dimensions } from '../image/types.ts';
import { type NetworkSize, networkInput, type Profile } from './profile.ts';
import { type Background, type CutoutRequest, plainRequest, type TypeLevel } from './request.ts';

/** Every size and choice of one piece of work, settled before the first pixel is decoded. */
export interface Plan {
  /** Of the image before crop, scale and position. */
  readonly result: Dimensions;
  /** At which the network is run. */
  readonly input: Dimensions;
  /** At least the result's and, where the source has it, the size of the network's input. */
  readonly decode: Dimensions;
  /** RGB under alpha 0: a ZIP shows the original background there (docs/contract.md section 7.4). */
  readonly hiddenColour: 'clear' | 'keep';
  /** Where the subject may be, in pixels of `result`; absent: anywhere. */
  readonly roi?: Box;
  readonly geometry: Omit<Geometry, 'shadowOpacity'>;
  /** Peak opacity of the drop shadow, 0 to 1, for each kind of subject. */
  readonly shadowOpacity: Readonly<Record<Subject, number>>;
  /** The kind that was named; `ask`: the engine is to find it out; `untold`: nobody wants to know. */
  readonly subject: Subject | 'ask' | 'untold';
  readonly background: Background['kind'];
}

/** What `size=full` would give (X-Max-Width, X-Max-Height). */
export const fullSize = (source: Dimensions): Dimensions => resultSize(source, SIZE_LIMITS.full);

const pixels = ({ width, height }: Dimensions) => width * height;

/** What the books are asked to set aside. `auto` is theirs to decide, with the balance. */
export function reserveRequest(
  requestId: string,
  request: Pick<CutoutRequest, 'size'>,
  source: Dimensions,
): ReserveRequest {
  if (request.size === 'auto') return { requestId, size: 'auto', pixels: pixels(fullSize(source)) };
  return { requestId, size: request.size === 'preview' ? 'preview' : 'full' };
}

/** Throws `roi_exceeds_bounds` or `roi_region_empty`. */
export function checkRoi({ roi }: CutoutRequest, source: Dimensions): void {
  const fault = roiFault(roi, source);
  if (fault) throw fail(fault);
}

/** Finding the kind out costs a run of the detector: only when the answer tells it or a shadow depends on it. */
function subjectOf({ type, typeLevel }: CutoutRequest, opacity: Plan['shadowOpacity']): Plan['subject'] {
  if (type !== 'auto') return type;
  return typeLevel !== 'none' || new Set(Object.values(opacity)).size > 1 ? 'ask' : 'untold';
}

export function makePlan(
  request: CutoutRequest,
  tier: Tier,
  source: Dimensions,
  network: NetworkSize,
  profile: Profile,
): Plan {
  const size: SizeName = request.size === 'auto' ? tier : request.size;
  const result = resultSize(source, SIZE_LIMITS[size]);
  const input = networkInput(profile, size, network);
  const { roi, crop, cropMargin, scale, position, shadow, format, channels, background } = request;
  // The matte of the subject has no shadow and no background; a ZIP is the same with and without `channels`.
  const matteOnly = channels === 'alpha' && format !== 'zip';
  const shadowOpacity = dropShadowOpacities(matteOnly ? plainRequest.shadow : shadow);
  return Object.freeze({
    result,
    input,
    // For the usual size: it is run where the smaller one leaves doubt.
    decode: decodeSize(source, result, network),
    hiddenColour: format === 'zip' ? 'keep' : 'clear',
    ...(roi !== WHOLE_IMAGE && { roi: roiBox(roi, source, result) }),
    geometry: { crop, cropMargin, scale, position },
    shadowOpacity,
    subject: subjectOf(request, shadowOpacity),
    background: matteOnly ? 'none' : background.kind,
  });
}

/**
 * True when hardly anything reached alpha 1/2: fewer than 16 pixels, or 0.02 % of where the subject may be
 * (docs/contract.md section 14). `area` in pixels of the result.
 */
export const lacksSubject = (foregroundPixels: number, area: number): boolean =>
  foregroundPixels < Math.max(16, area * 0.0002);

/** X-Type for a kind that was named or found, in the words of the level (docs/contract.md section 7.1). */
export function typeWord(type: Subject, level: TypeLevel): string | undefined {
  if (level === 'none') return undefined;
  if (type === 'graphic') return level === '2' ? 'graphics' : 'other';
  if (type === 'transportation') return level === '2' ? 'transportation' : 'other';
  return type;
}
