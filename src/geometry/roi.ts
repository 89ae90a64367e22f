import type { Box } from '../engine/types.ts';
import type { Dimensions } from '../image/types.ts';
import { inPixels, type Length, nothing, parseLengths } from './length.ts';
import type { OptionParser } from './optionParser.ts';

/** Corners of the region of interest in the upright input; pixels and percentages may be mixed. */
export interface Roi {
  readonly x1: Length;
  readonly y1: Length;
  readonly x2: Length;
  readonly y2: Length;
}

const everything: Length = { value: 100, unit: '%' };

export const wholeImage: Roi = { x1: nothing, y1: nothing, x2: everything, y2: everything };

const isWhole = ({ x1, y1, x2, y2 }: Roi): boolean =>
  x1.value === 0 &&
  y1.value === 0 &&
  [x2, y2].every(({ value, unit }) => unit === everything.unit && value === everything.value);

/** The whole image, however it is written, is `wholeImage` itself. */
export const roiParser: OptionParser<Roi> = {
  parse(text) {
    const [x1, y1, x2, y2, ...more] = parseLengths(text) ?? [];
    if (!x1 || !y1 || !x2 || !y2 || more.length > 0) return undefined;
    const roi = { x1, y1, x2, y2 };
    return isWhole(roi) ? wholeImage : roi;
  },
  expected: 'four lengths "x1 y1 x2 y2" from the left and top edge, each <n>px, <n>% or 0',
  examples: ['0% 0% 100% 100%', '0 0 100% 100%', '10px 20px 450px 90%'],
};

/** Error code (docs/contract.md section 4) of a region that does not fit this input; undefined if it fits. */
export function roiFault(
  roi: Roi,
  { width, height }: Dimensions,
): 'roi_exceeds_bounds' | 'roi_region_empty' | undefined {
  const [x1, x2] = [inPixels(roi.x1, width), inPixels(roi.x2, width)];
  const [y1, y2] = [inPixels(roi.y1, height), inPixels(roi.y2, height)];
  if (Math.max(x1, x2) > width || Math.max(y1, y2) > height) return 'roi_exceeds_bounds';
  return x1 < x2 && y1 < y2 ? undefined : 'roi_region_empty';
}

/** Pixels of the result's side that the interval touches: rounded outward, at least one. */
function touched(from: Length, to: Length, input: number, result: number): { start: number; size: number } {
  const at = ({ value, unit }: Length) => (value * result) / (unit === '%' ? 100 : input);
  const start = Math.floor(at(from));
  return { start, size: Math.max(1, Math.ceil(at(to)) - start) };
}

/** A valid region in pixels of the result: every pixel that it touches. */
export function roiBox(roi: Roi, input: Dimensions, result: Dimensions): Box {
  const x = touched(roi.x1, roi.x2, input.width, result.width);
  const y = touched(roi.y1, roi.y2, input.height, result.height);
  return { left: x.start, top: y.start, width: x.size, height: y.size };
}
