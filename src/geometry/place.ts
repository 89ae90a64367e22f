import type { Box } from '../engine/types.ts';
import type { Dimensions } from '../image/types.ts';
import { parseShare } from './length.ts';
import type { OptionParser } from './optionParser.ts';

/** Fraction of the canvas, 0.1 to 1, that the subject fits into; `original`: not scaled. */
export type Scale = 'original' | number;

export const scaleParser: OptionParser<Scale> = {
  parse: (text) => (text.toLowerCase() === 'original' ? 'original' : parseShare(text, 10)),
  expected: 'original or a percentage from 10% to 100%',
  examples: ['original', '80%'],
};

/** Fractions of the space around the subject, 0 (left, top) to 1 (right, bottom); `original`: not moved. */
export type Position = 'original' | { readonly x: number; readonly y: number };

const centred: Position = { x: 0.5, y: 0.5 };

/** Returns the given position. A subject without one is not moved, or centred if it is scaled. */
export const wantedPosition = (scale: Scale, position: Position | undefined): Position =>
  position ?? (scale === 'original' ? 'original' : centred);

export const positionParser: OptionParser<Position> = {
  parse(text) {
    const word = text.toLowerCase();
    if (word === 'original') return 'original';
    if (word === 'center') return centred;
    const shares = word.split(/\s+/).map((share) => parseShare(share, 0));
    const [x, y = x] = shares;
    return x === undefined || y === undefined || shares.includes(undefined) || shares.length > 2
      ? undefined
      : { x, y };
  },
  expected: 'original, center, or one or two percentages from 0% to 100% (horizontal, vertical)',
  examples: ['original', 'center', '20%', '20% 80%'],
};

/** The size, aspect ratio kept, that fills `share` of the canvas in one direction, to the nearest pixel. */
function scaledTo(share: number, subject: Dimensions, canvas: Dimensions): Dimensions {
  const factor = share * Math.min(canvas.width / subject.width, canvas.height / subject.height);
  const side = (own: number, room: number) => Math.min(room, Math.max(1, Math.round(own * factor)));
  return { width: side(subject.width, canvas.width), height: side(subject.height, canvas.height) };
}

/** Start of `size` pixels around the previous centre, moved into the available space. */
const keepCentre = (start: number, before: number, size: number, room: number): number =>
  Math.max(0, Math.min(Math.round(start + (before - size) / 2), room - size));

/** Box of a placed subject. Both boxes lie inside the canvas. */
export function placedBox(
  canvas: Dimensions,
  subject: Box,
  scale: Scale,
  position: Position | undefined,
): Box {
  const { width, height } = scale === 'original' ? subject : scaledTo(scale, subject, canvas);
  const wanted = wantedPosition(scale, position);
  if (wanted === 'original') {
    return {
      left: keepCentre(subject.left, subject.width, width, canvas.width),
      top: keepCentre(subject.top, subject.height, height, canvas.height),
      width,
      height,
    };
  }
  return {
    left: Math.round((canvas.width - width) * wanted.x),
    top: Math.round((canvas.height - height) * wanted.y),
    width,
    height,
  };
}
