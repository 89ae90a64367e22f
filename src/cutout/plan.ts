import type { Tier } from '../billing/price.ts';
import type { Box, SubjectType } from '../engine/types.ts';
import type { Colour } from '../geometry/colour.ts';
import type { Geometry } from '../geometry/compose.ts';
import { roiBox, wholeImage } from '../geometry/roi.ts';
import { dropShadowOpacities } from '../geometry/shadow.ts';
import { type NormalisedPrompt, normalisedPrompt } from '../geometry/subjectPrompt.ts';
import { maskSize } from '../image/mask.ts';
import { decodeSize, resultSize, type SizeName, sizeLimits } from '../image/size.ts';
import type { Dimensions, Probe } from '../image/types.ts';
import { type NetworkSize, networkInput, type Profile } from './qualityProfile.ts';
import { type CutoutRequest, plainRequest, type TypeLevel } from './request.ts';

/** An encoded image as received, and its header. */
export interface EncodedImage {
  readonly bytes: Uint8Array;
  readonly probe: Probe;
}

export interface Inputs {
  readonly image: EncodedImage;
  readonly background: EncodedImage | undefined;
  readonly mask?: EncodedImage | undefined;
}

/** The background of the result. */
type Backdrop =
  | { readonly kind: 'none' }
  | { readonly kind: 'colour'; readonly colour: Colour }
  | ({ readonly kind: 'image' } & EncodedImage);

/** One job: its inputs and every size and choice, fixed before the first pixel is decoded. */
export interface Plan {
  readonly image: EncodedImage;
  readonly background: Backdrop;
  /** Says where the subject is. `size`: at which it is decoded. */
  readonly mask?: EncodedImage & { readonly size: Dimensions };
  /** Which subject is meant, instead of `mask`. */
  readonly prompt?: NormalisedPrompt;
  /** Size of the result before crop, scale and position. */
  readonly result: Dimensions;
  /** Size that `size=full` would give (X-Max-Width, X-Max-Height). */
  readonly max: Dimensions;
  /** Input size of the network. */
  readonly input: Dimensions;
  /** Size to decode at: at least `result` and, if the source is large enough, the network's usual input. */
  readonly decode: Dimensions;
  readonly format: CutoutRequest['format'];
  readonly lossless: boolean;
  readonly channels: CutoutRequest['channels'];
  /** RGB where alpha is 0: a ZIP keeps the original background there (docs/contract.md section 7.4). */
  readonly hiddenColour: 'clear' | 'keep';
  /** Region of interest in pixels of `result`; absent: the whole image. */
  readonly roi?: Box;
  readonly geometry: Omit<Geometry, 'shadowOpacity'>;
  /** Peak opacity of the drop shadow, 0 to 1, for each subject type. */
  readonly shadowOpacity: Readonly<Record<SubjectType, number>>;
  /** The type the caller named; `classify`: the engine classifies it; `unused`: it is not needed. */
  readonly subject: SubjectType | 'classify' | 'unused';
  readonly typeLevel: TypeLevel;
}

/** The plan for each tier that the ledger may reserve: of a full-size result, and of a preview. They differ for `size=auto` only. */
export type Plans = Readonly<Record<Tier, Plan>>;

/** What a plan decodes: the image, and the mask and the background that were sent with it. */
export const decodedImages = ({ image, mask, background }: Plan): readonly EncodedImage[] => [
  image,
  ...(mask ? [mask] : []),
  ...(background.kind === 'image' ? [background] : []),
];

/** The loaded network, and the profile of CUTOUT_PROFILE. */
export interface NetworkProfile {
  readonly network: NetworkSize;
  readonly profile: Profile;
}

const fullSize = (source: Dimensions): Dimensions => resultSize(source, sizeLimits.full);

const pixels = ({ width, height }: Dimensions) => width * height;

/** The size to reserve. The ledger decides `auto` by the balance, for results larger than a preview. */
export function tierToReserve({ size }: Pick<CutoutRequest, 'size'>, source: Dimensions): Tier | 'auto' {
  if (size !== 'auto') return size === 'preview' ? 'preview' : 'full';
  return pixels(fullSize(source)) > sizeLimits.preview ? 'auto' : 'preview';
}

/** Classifying takes a run of another network: only if the answer reports the type or a shadow depends on it. */
function subjectOf({ type, typeLevel }: CutoutRequest, opacity: Plan['shadowOpacity']): Plan['subject'] {
  if (type !== 'auto') return type;
  return typeLevel !== 'none' || new Set(Object.values(opacity)).size > 1 ? 'classify' : 'unused';
}

const noBackground: Backdrop = { kind: 'none' };

function backdropOf({ background }: CutoutRequest, sent: Inputs['background']): Backdrop {
  if (background.kind !== 'image') return background;
  return sent ? { kind: 'image', ...sent } : noBackground;
}

/** The plan for a result of this size, whatever `size` the request has. */
export function makePlan(
  request: CutoutRequest,
  size: SizeName,
  { image, background, mask }: Inputs,
  { network, profile }: NetworkProfile,
): Plan {
  const source = image.probe;
  const result = resultSize(source, sizeLimits[size]);
  const { roi, crop, cropMargin, scale, position, shadow, format, lossless, channels, typeLevel } = request;
  // The matte alone has neither shadow nor background; a ZIP ignores `channels`.
  const matteOnly = channels === 'alpha' && format !== 'zip';
  const shadowOpacity = dropShadowOpacities(matteOnly ? plainRequest.shadow : shadow);
  return Object.freeze({
    image,
    background: matteOnly ? noBackground : backdropOf(request, background),
    ...(mask && { mask: { ...mask, size: maskSize(mask.probe) } }),
    ...(request.prompt && { prompt: normalisedPrompt(request.prompt, source) }),
    result,
    max: fullSize(source),
    input: networkInput(profile, size, network),
    // For the network's usual size: it runs at that size where the smaller run leaves it in doubt.
    decode: decodeSize(source, result, network),
    format,
    lossless,
    channels,
    hiddenColour: format === 'zip' ? 'keep' : 'clear',
    ...(roi !== wholeImage && { roi: roiBox(roi, source, result) }),
    geometry: { crop, cropMargin, scale, position },
    shadowOpacity,
    subject: subjectOf(request, shadowOpacity),
    typeLevel,
  });
}

/** Step 3: plans a request whose headers were read. Only `size=auto` leaves the size to what the ledger reserves. */
export function makePlans(request: CutoutRequest, inputs: Inputs, setup: NetworkProfile): Plans {
  const planOf = (size: SizeName) => makePlan(request, size, inputs, setup);
  if (request.size === 'auto') return { full: planOf('full'), preview: planOf('preview') };
  const plan = planOf(request.size);
  return { full: plan, preview: plan };
}

/**
 * True if too few pixels reach alpha 1/2: fewer than 16, or less than 0.02 % of the region of interest
 * (docs/contract.md section 14). `area` in pixels of the result.
 */
export const isEmptyForeground = (foregroundPixels: number, area: number): boolean =>
  foregroundPixels < Math.max(16, area * 0.0002);

/** X-Type for a subject type at a level (docs/contract.md section 7.1); undefined for level `none`. */
export function typeLabel(type: SubjectType, level: TypeLevel): string | undefined {
  if (level === 'none') return undefined;
  if (type === 'graphic') return level === '2' ? 'graphics' : 'other';
  if (type === 'transportation') return level === '2' ? 'transportation' : 'other';
  return type;
}
