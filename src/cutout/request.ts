import type { SubjectType } from '../engine/types.ts';
import type { Colour } from '../geometry/colour.ts';
import { type Margin, noMargin } from '../geometry/crop.ts';
import { type Position, type Scale, wantedPosition } from '../geometry/place.ts';
import { type Roi, wholeImage } from '../geometry/roi.ts';
import { dropShadowOpacities, type ShadowOptions } from '../geometry/shadow.ts';
import type { SubjectPrompt } from '../geometry/subjectPrompt.ts';
import type { SizeName } from '../image/size.ts';
import type { OutputFormat } from '../image/types.ts';

/** Where the image comes from: exactly one, checked by the parser of the request. */
export type Source =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'base64'; readonly text: string }
  | { readonly kind: 'url'; readonly url: string };

/** Subject types that a caller may name; `auto` leaves it to the classifier. */
export type RequestedSubjectType = 'auto' | SubjectType;

/** Level of detail of X-Type; `none` omits the header. */
export type TypeLevel = 'none' | '1' | '2';

export type Background =
  | { readonly kind: 'none' }
  | { readonly kind: 'colour'; readonly colour: Colour }
  | { readonly kind: 'image'; readonly source: Exclude<Source, { kind: 'base64' }> };

/** An image that says where the subject is (docs/contract.md section 4.1). */
export type MaskSource = Exclude<Source, { kind: 'url' }>;

/** A parsed request, with aliases resolved and defaults filled in. Frozen; all later steps are functions of it. */
export interface CutoutRequest {
  readonly source: Source;
  readonly size: SizeName | 'auto';
  readonly type: RequestedSubjectType;
  readonly typeLevel: TypeLevel;
  readonly format: OutputFormat | 'auto';
  /** WebP without loss; false for other formats. */
  readonly lossless: boolean;
  readonly channels: 'rgba' | 'alpha';
  readonly roi: Roi;
  readonly crop: boolean;
  readonly cropMargin: Margin;
  readonly scale: Scale;
  readonly position: Position | undefined;
  readonly shadow: ShadowOptions;
  readonly background: Background;
  readonly mask?: MaskSource;
  /** Points and a box that say which subject is meant. */
  readonly prompt?: SubjectPrompt;
}

/** A request with every option at its default. */
export const plainRequest = {
  size: 'preview',
  type: 'auto',
  typeLevel: '1',
  format: 'auto',
  lossless: false,
  channels: 'rgba',
  roi: wholeImage,
  crop: false,
  cropMargin: noMargin,
  scale: 'original',
  position: undefined,
  shadow: { addShadow: false, shadowType: {}, shadowOpacity: {} },
  background: { kind: 'none' },
} as const satisfies Omit<CutoutRequest, 'source'>;

/**
 * The canonical text of everything but the images: equal for requests that mean the same. A request is plain data with
 * its fields in one order, and the grammars make lengths canonical.
 */
export function settingsOf({
  source: _source,
  mask: _mask,
  background,
  shadow,
  position,
  ...settings
}: CutoutRequest): string {
  return JSON.stringify([
    settings,
    wantedPosition(settings.scale, position),
    dropShadowOpacities(shadow),
    background.kind === 'colour' ? background : background.kind,
  ]);
}
