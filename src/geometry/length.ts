/** Pixels, or percent of a length that is known only later. At least 0. */
export interface Length {
  readonly value: number;
  readonly unit: 'px' | '%';
}

export const nothing: Length = { value: 0, unit: 'px' };

const lengthPattern = /^(\d+(?:\.\d+)?|\.\d+)(px|%)?$/i;

/** `<n>px`, `<n>%` or a bare 0. */
export function parseLength(text: string): Length | undefined {
  const [, digits, unit] = lengthPattern.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const value = Number(digits);
  if (unit === undefined) return value === 0 ? { value, unit: 'px' } : undefined;
  return { value, unit: unit === '%' ? '%' : 'px' };
}

/** Lengths separated by white space; undefined if one is malformed. Zero is 0 pixels in either unit. */
export function parseLengths(text: string): readonly Length[] | undefined {
  const lengths = text
    .split(/\s+/)
    .map(parseLength)
    .map((length) => (length?.value === 0 ? nothing : length));
  return lengths.every((length) => length !== undefined) ? lengths : undefined;
}

/** `<n>%` from `min` to 100, as a fraction of 1. */
export function parseShare(text: string, min: number): number | undefined {
  const length = parseLength(text);
  if (length?.unit !== '%' || length.value < min || length.value > 100) return undefined;
  return length.value / 100;
}

/** The length in pixels; percentages refer to `whole`. */
export const inPixels = ({ value, unit }: Length, whole: number): number =>
  unit === 'px' ? value : (whole * value) / 100;
