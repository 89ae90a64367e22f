import { allSubjectTypes, type Box, type DropShadow, type SubjectType } from '../engine/types.ts';
import type { Dimensions } from '../image/types.ts';
import { join, moved, outset, type Sides } from './box.ts';
import { parseLength } from './length.ts';
import type { OptionParser } from './optionParser.ts';

/** `car` and `3D` are accepted and not drawn (docs/contract.md section 4). */
const shadowTypes = ['none', 'auto', 'drop', 'car', '3D'] as const;
export type ShadowType = (typeof shadowTypes)[number];

export const shadowTypeParser: OptionParser<ShadowType> = {
  parse: (text) => shadowTypes.find((type) => type.toLowerCase() === text.toLowerCase()),
  expected: 'none, auto, drop, car or 3D',
  examples: shadowTypes,
};

/** Peak opacity, 0 to 1; `auto`: by the type of subject. */
export type ShadowOpacity = 'auto' | number;

export const shadowOpacityParser: OptionParser<ShadowOpacity> = {
  parse(text) {
    if (text.toLowerCase() === 'auto') return 'auto';
    const percent = parseLength(`${text}%`)?.value;
    return percent === undefined || percent > 100 ? undefined : percent / 100;
  },
  expected: 'a number from 0 to 100, or auto',
  examples: ['auto', '50', '87.5'],
};

/** An option that may differ by subject: `any` is the plain field, the others are `field[subject]`. */
export type BySubject<T> = Readonly<Partial<Record<SubjectType | 'any', T>>>;

/** Other words for kinds of subject that a request may use. */
export const subjectAliases = {
  graphics: 'graphic',
  car_interior: 'car',
  car_part: 'car',
} as const satisfies Readonly<Record<string, SubjectType>>;

/** Kinds of subject by their names in requests; aliases last. */
export const subjectNames: ReadonlyMap<string, SubjectType> = new Map<string, SubjectType>([
  ...allSubjectTypes.map((type) => [type, type] as const),
  ...Object.entries(subjectAliases),
]);

/**
 * Reads `field` and every `field[subject]` of a request; {} if none is given. An unknown subject is as
 * invalid as a value outside the grammar.
 */
export function parseBySubject<T>(
  field: string,
  texts: Iterable<readonly [name: string, text: string]>,
  grammar: OptionParser<T>,
): { readonly value: BySubject<T> } | { readonly invalid: string } {
  const value: Partial<Record<SubjectType | 'any', T>> = {};
  for (const [name, text] of texts) {
    const bracketed = name.startsWith(`${field}[`) && name.endsWith(']');
    if (name !== field && !bracketed) continue;
    const subject = bracketed ? subjectNames.get(name.slice(field.length + 1, -1).toLowerCase()) : 'any';
    if (subject === undefined) return { invalid: name };
    const parsed = grammar.parse(text);
    if (parsed === undefined) return { invalid: text };
    value[subject] = parsed;
  }
  return { value };
}

export interface ShadowOptions {
  readonly addShadow: boolean;
  readonly shadowType: BySubject<ShadowType>;
  readonly shadowOpacity: BySubject<ShadowOpacity>;
}

const autoTypes: Readonly<Record<SubjectType, ShadowType>> = {
  person: '3D',
  product: 'drop',
  car: 'car',
  animal: 'drop',
  graphic: 'drop',
  transportation: '3D',
  other: 'drop',
};

/** A type for this subject takes precedence over the plain one, any shadow_type over add_shadow. */
function wantedType({ addShadow, shadowType }: ShadowOptions, subject: SubjectType): ShadowType {
  if (Object.keys(shadowType).length === 0) return addShadow ? 'drop' : 'none';
  const type = shadowType[subject] ?? shadowType.any ?? 'none';
  return type === 'auto' ? autoTypes[subject] : type;
}

/** Peak opacity, 0 to 1, of this subject's drop shadow; 0: none. */
export function dropShadowOpacity(options: ShadowOptions, subject: SubjectType): number {
  if (wantedType(options, subject) !== 'drop') return 0;
  const opacity = options.shadowOpacity[subject] ?? options.shadowOpacity.any ?? 'auto';
  if (opacity === 'auto') return subject === 'car' ? 0.9 : 0.5;
  return opacity;
}

/** Peak opacity for each type of subject. */
export const dropShadowOpacities = (options: ShadowOptions): Readonly<Record<SubjectType, number>> =>
  Object.fromEntries(
    allSubjectTypes.map((subject) => [subject, dropShadowOpacity(options, subject)]),
  ) as Readonly<Record<SubjectType, number>>;

/** The preset `drop`, in fractions of the longer side of the subject's box (docs/matting.md section 7). */
const dropShares = { sigma: 0.02, offsetX: 0, offsetY: 0.02, fade: 0.03 } as const;

/** Limits of the engine in pixels; exceeded by sides above 200 000 only. */
const minSigma = 0.1;
const maxSigma = 4096;
const maxOffset = 65_535;

/**
 * The drop shadow of a subject on a canvas of this height. It fades out above the lower border if that cuts
 * the subject, where it would show as a line.
 */
export function dropShadow(subject: Box, canvasHeight: number, opacity: number): DropShadow {
  const side = Math.max(subject.width, subject.height);
  const cut = subject.top + subject.height === canvasHeight;
  const offset = (share: number) => Math.min(Math.round(side * share), maxOffset);
  return {
    opacity,
    // The engine computes in single precision: rounded here, both sides find the same extent.
    sigma: Math.fround(Math.min(Math.max(side * dropShares.sigma, minSigma), maxSigma)),
    offsetX: offset(dropShares.offsetX),
    offsetY: offset(dropShares.offsetY),
    fade: cut ? Math.max(1, Math.round(side * dropShares.fade)) : 0,
  };
}

/** Bounding box of a subject and its shadow; equal to that of native/image/shadow.h. */
export function shadowExtent(subject: Box, { sigma, offsetX, offsetY }: DropShadow): Box {
  const reach = Math.ceil(3 * sigma);
  const sides = { top: reach, right: reach, bottom: reach, left: reach };
  return join(subject, outset(moved(subject, offsetX, offsetY), sides));
}

/** Extent of the drop shadow beyond each side of the subject's box, in pixels, for a subject of this size. */
export function shadowReach({ width, height }: Dimensions, opacity: number): Sides<number> {
  if (opacity === 0) return { top: 0, right: 0, bottom: 0, left: 0 };
  const subject = { left: 0, top: 0, width, height };
  const extent = shadowExtent(subject, dropShadow(subject, height, opacity));
  return {
    top: -extent.top,
    right: extent.left + extent.width - width,
    bottom: extent.top + extent.height - height,
    left: -extent.left,
  };
}
