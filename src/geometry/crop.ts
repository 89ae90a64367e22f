import type { Box } from '../engine/types.ts';
import type { Dimensions } from '../image/types.ts';
import { outset, type Sides } from './box.ts';
import { inPixels, type Length, nothing, parseLengths } from './length.ts';
import type { OptionParser } from './optionParser.ts';
import { shadowReach } from './shadow.ts';

export type Margin = Sides<Length>;

/** Larger margins are clamped to this: percent of the subject's side, or pixels of the result. */
const maxMargin: Readonly<Record<Length['unit'], number>> = { '%': 50, px: 500 };

export const noMargin: Margin = { top: nothing, right: nothing, bottom: nothing, left: nothing };

export const cropMarginParser: OptionParser<Margin> = {
  parse(text) {
    const lengths = parseLengths(text);
    if (lengths === undefined || lengths.length > 4 || lengths.length === 3) return undefined;
    const [top, right = top, bottom = top, left = right] = lengths.map(({ value, unit }) => ({
      value: Math.min(value, maxMargin[unit]),
      unit,
    }));
    return top && right && bottom && left && { top, right, bottom, left };
  },
  expected:
    'one length (all sides), two (top and bottom, left and right) or four (top, right, bottom, left), ' +
    'each <n>px, <n>% or 0',
  examples: ['0', '10%', '30px 5%', '10px 20px 30px 40px'],
};

/** Whole pixels around a subject of this size. */
const marginPixels = (margin: Margin, { width, height }: Dimensions): Sides<number> => ({
  top: Math.round(inPixels(margin.top, height)),
  right: Math.round(inPixels(margin.right, width)),
  bottom: Math.round(inPixels(margin.bottom, height)),
  left: Math.round(inPixels(margin.left, width)),
});

/**
 * The box that `crop` cuts out, in pixels of the image: the subject, its shadow (opacity 0..1), then the
 * margin, a share of the subject alone. Shadow and margin may extend beyond the image; where the image's
 * border cuts the subject only the margin does, because a shadow there would show the cut as a line.
 */
export function cropBox(image: Dimensions, subject: Box, margin: Margin, shadowOpacity: number): Box {
  const reach = shadowReach(subject, shadowOpacity);
  const withShadow = outset(subject, {
    top: subject.top === 0 ? 0 : reach.top,
    right: subject.left + subject.width === image.width ? 0 : reach.right,
    bottom: subject.top + subject.height === image.height ? 0 : reach.bottom,
    left: subject.left === 0 ? 0 : reach.left,
  });
  return outset(withShadow, marginPixels(margin, subject));
}

/** Upper bound of the crop of any subject in this image. */
export function largestCrop(image: Dimensions, margin: Margin, shadowOpacity: number): Dimensions {
  const subject = { left: 0, top: 0, ...image };
  const { width, height } = outset(
    outset(subject, shadowReach(subject, shadowOpacity)),
    marginPixels(margin, subject),
  );
  return { width, height };
}
