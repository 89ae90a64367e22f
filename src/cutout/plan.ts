import type { Tier } from '../billing/price.ts';
import type { Box } from '../engine/types.ts';
import { fail } from '../errors.ts';
import type { Colour } from '../geometry/colour.ts';
import type { Geometry } from '../geometry/compose.ts';
import { roiBox, roiFault, WHOLE_IMAGE } from '../geometry/roi.ts';
import { dropShadowOpacities, type Subject } from '../geometry/shadow.ts';
import { decodeSize, resultSize, SIZE_LIMITS, type SizeName } from '../image/size.ts';
import type { Dimensions, Probe } from '../image/types.ts';
import { type NetworkSize, networkInput, type Profile } from './profile.ts';
import { type CutoutRequest, plainRequest, type TypeLevel } from './request.ts';

/** An image as it was sent, and what its header says. */
export interface Input {
  readonly bytes: Uint8Array;
  readonly probe: Probe;
}

export interface Inputs {
  readonly image: Input;
  readonly background: Input | undefined;
}

/** What lies behind the subject. */
export type Backdrop =
  | { readonly kind: 'none' }
  | { readonly kind: 'colour'; readonly colour: Colour }
  | ({ readonly kind: 'image' } & Input);

/** One piece of work: its inputs and every size and choice, settled before the first pixel is decoded. */
export interface Plan {
  readonly image: Input;
  readonly background: Backdrop;
  /** Of the image before crop, scale and position. */
  readonly result: Dimensions;
  /** What `size=full` would give (X-Max-Width, X-Max-Height). */
  readonly max: Dimensions;
  /** At which the network is run. */
  readonly input: Dimensions;
  /** At least the result's and, where the source has it, the size of the network's input. */
  readonly decode: Dimensions;
  readonly format: CutoutRequest['format'];
  readonly channels: CutoutRequest['channels'];
  /** RGB under alpha 0: a ZIP shows the original background there (docs/contract.md section 7.4). */
  readonly hiddenColour: 'clear' | 'keep';
  /** Where the subject may be, in pixels of `result`; absent: anywhere. */
  readonly roi?: Box;
  readonly geometry: Omit<Geometry, 'shadowOpacity'>;
  /** Peak opacity of the drop shadow, 0 to 1, for each kind of subject. */
  readonly shadowOpacity: Readonly<Record<Subject, number>>;
  /** The kind that was named; `ask`: the engine is to find it out; `untold`: nobody wants to know. */
  readonly subject: Subject | 'ask' | 'untold';
  readonly typeLevel: TypeLevel;
}

/** By the size that the ledger reserves: `size=auto` is one or the other, every other size is the same in both. */
export type Plans = Readonly<Record<Tier, Plan>>;

/** What plans are made for: the loaded network and CUTOUT_PROFILE. */
export interface Machine {
  readonly network: NetworkSize;
  readonly profile: Profile;
}

const fullSize = (source: Dimensions): Dimensions => resultSize(source, SIZE_LIMITS.full);

const pixels = ({ width, height }: Dimensions) => width * height;

/** The size that the ledger is asked for. `auto` is its to decide, by the balance, for what is larger than a preview. */
export function sizeToReserve({ size }: Pick<CutoutRequest, 'size'>, source: Dimensions): Tier | 'auto' {
  if (size !== 'auto') return size === 'preview' ? 'preview' : 'full';
  return pixels(fullSize(source)) > SIZE_LIMITS.preview ? 'auto' : 'preview';
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

const nothingBehind: Backdrop = { kind: 'none' };

function backdropOf({ background }: CutoutRequest, sent: Inputs['background']): Backdrop {
  if (background.kind !== 'image') return background;
  return sent ? { kind: 'image', ...sent } : nothingBehind;
}

/** The plan for a result of this tier. */
export function makePlan(
  request: CutoutRequest,
  tier: Tier,
  { image, background }: Inputs,
  { network, profile }: Machine,
): Plan {
  const size: SizeName = request.size === 'auto' ? tier : request.size;
  const source = image.probe;
  const result = resultSize(source, SIZE_LIMITS[size]);
  const { roi, crop, cropMargin, scale, position, shadow, format, channels, typeLevel } = request;
  // The matte of the subject has no shadow and no background; a ZIP is the same with and without `channels`.
  const matteOnly = channels === 'alpha' && format !== 'zip';
  const shadowOpacity = dropShadowOpacities(matteOnly ? plainRequest.shadow : shadow);
  return Object.freeze({
    image,
    background: matteOnly ? nothingBehind : backdropOf(request, background),
    result,
    max: fullSize(source),
    input: networkInput(profile, size, network),
    // For the usual size: it is run where the smaller one leaves doubt.
    decode: decodeSize(source, result, network),
    format,
    channels,
    hiddenColour: format === 'zip' ? 'keep' : 'clear',
    ...(roi !== WHOLE_IMAGE && { roi: roiBox(roi, source, result) }),
    geometry: { crop, cropMargin, scale, position },
    shadowOpacity,
    subject: subjectOf(request, shadowOpacity),
    typeLevel,
  });
}

/** Step 3: what is to be done, whichever size the ledger reserves. */
export function makePlans(request: CutoutRequest, inputs: Inputs, machine: Machine): Plans {
  const full = makePlan(request, 'full', inputs, machine);
  return { full, preview: request.size === 'auto' ? makePlan(request, 'preview', inputs, machine) : full };
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
