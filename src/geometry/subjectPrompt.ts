import type { SubjectBox, SubjectPoint } from '../engine/types.ts';
import type { Dimensions } from '../image/types.ts';
import { inPixels, type Length, parseLengths } from './length.ts';
import type { OptionParser } from './optionParser.ts';
import { type Roi, roiFault } from './roi.ts';

/** A point of the upright input; pixels and percentages may be mixed. */
export interface PromptPoint {
  readonly x: Length;
  readonly y: Length;
  /** Whether it is in the subject. */
  readonly include: boolean;
}

export const maxSubjectPoints = 32;

function parsePoint(text: string): PromptPoint | undefined {
  const include = !text.startsWith('-');
  const [x, y, ...more] = parseLengths(include ? text : text.slice(1).trimStart()) ?? [];
  return x && y && more.length === 0 ? { x, y, include } : undefined;
}

export const subjectPointsParser: OptionParser<readonly PromptPoint[]> = {
  parse(text) {
    const points = text.split(';').map((each) => parsePoint(each.trim()));
    if (points.length > maxSubjectPoints) return undefined;
    return points.every((point) => point !== undefined) ? points : undefined;
  },
  expected: `up to ${maxSubjectPoints} points "x y" from the left and top edge, separated by semicolons, each length <n>px, <n>% or 0, with a minus before a point that is not in the subject`,
  examples: ['50% 50%', '120px 80px; 30% 60%', '50% 40%; -10% 90%'],
};

/** What a request says about its subject. At least one point that is included, or a box. */
export interface SubjectPrompt {
  readonly points: readonly PromptPoint[];
  readonly box?: Roi;
}

/** Whether nothing says where the subject is: every point is one that is not in it. */
export const saysNothing = ({ points, box }: SubjectPrompt): boolean =>
  !box && !points.some(({ include }) => include);

/** Positions as fractions of the image's sides. */
export interface NormalisedPrompt {
  readonly points: readonly SubjectPoint[];
  readonly box?: SubjectBox;
}

const fraction = (length: Length, side: number): number => inPixels(length, side) / side;

/** The error of a prompt that does not fit this input; undefined if it fits. */
export function promptFault(
  { points, box }: SubjectPrompt,
  image: Dimensions,
): { readonly id: 'invalid_subject_points' | 'invalid_subject_box'; readonly detail: string } | undefined {
  const { width, height } = image;
  const size = `The upright image has ${width} x ${height} pixels`;
  const outside = points.findIndex(({ x, y }) => fraction(x, width) > 1 || fraction(y, height) > 1);
  if (outside >= 0)
    return {
      id: 'invalid_subject_points',
      detail: `${size}, and point ${outside + 1} of subject_points is outside it.`,
    };
  const fault = box && roiFault(box, image);
  if (!fault) return undefined;
  const what = fault === 'roi_region_empty' ? 'is empty' : 'exceeds it';
  return { id: 'invalid_subject_box', detail: `${size}, and subject_box ${what}.` };
}

/** A prompt that fits this input, in fractions. */
export function normalisedPrompt(
  { points, box }: SubjectPrompt,
  { width, height }: Dimensions,
): NormalisedPrompt {
  return {
    points: points.map(({ x, y, include }) => ({ x: fraction(x, width), y: fraction(y, height), include })),
    ...(box && {
      box: {
        x1: fraction(box.x1, width),
        y1: fraction(box.y1, height),
        x2: fraction(box.x2, width),
        y2: fraction(box.y2, height),
      },
    }),
  };
}

/**
 * The part of a prompt that comes first: its box alone, else its first point that is included. What else it says adds to
 * that. The prompt itself where there is nothing else.
 */
export function initialPrompt(prompt: NormalisedPrompt): NormalisedPrompt {
  const { points, box } = prompt;
  if (points.length + (box ? 1 : 0) <= 1) return prompt;
  return box ? { points: [], box } : { points: points.filter(({ include }) => include).slice(0, 1) };
}
