import { type Values, withMask } from './request.ts';

/** A point in percent of the image. */
export interface MarkedPoint {
  readonly x: number;
  readonly y: number;
  readonly include: boolean;
}

/** Corners in percent of the image. */
export interface MarkedBox {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** What the fields subject_points and subject_box say in percent; lengths in pixels are not shown. */
export interface Marks {
  readonly points: readonly MarkedPoint[];
  readonly box: MarkedBox | undefined;
}

const number = '(\\d+(?:\\.\\d+)?|\\.\\d+)%';
const POINT = new RegExp(`^(-?)\\s*${number}\\s+${number}$`);
const BOX = new RegExp(`^${number}\\s+${number}\\s+${number}\\s+${number}$`);

export function marksOf({ texts }: Values): Marks {
  const points = (texts['subject_points'] ?? '').split(';').flatMap((text) => {
    const [, minus, x, y] = POINT.exec(text.trim()) ?? [];
    return x && y ? [{ x: Number(x), y: Number(y), include: minus === '' }] : [];
  });
  const [, x1, y1, x2, y2] = BOX.exec((texts['subject_box'] ?? '').trim()) ?? [];
  const box =
    x1 && y1 && x2 && y2 ? { x1: Number(x1), y1: Number(y1), x2: Number(x2), y2: Number(y2) } : undefined;
  return { points, box };
}

/** Within the image, with one decimal: a pixel of a screen. */
const percent = (value: number) => `${Number(Math.min(100, Math.max(0, value)).toFixed(1))}%`;

/** The values with these marks; a mask goes, because the service takes only one of both. */
export function withMarks(values: Values, { points, box }: Marks): Values {
  const { subject_points: _, subject_box: __, ...texts } = values.texts;
  const marked = points.map(({ x, y, include }) => `${include ? '' : '-'}${percent(x)} ${percent(y)}`);
  const any = points.length > 0 || box;
  return {
    ...(any ? withMask(values, undefined) : values),
    texts: {
      ...texts,
      ...(marked.length > 0 && { subject_points: marked.join('; ') }),
      ...(box && { subject_box: [box.x1, box.y1, box.x2, box.y2].map(percent).join(' ') }),
    },
  };
}

/** Without the last point, or without the box. */
export const undone = ({ points, box }: Marks): Marks =>
  points.length > 0 ? { points: points.slice(0, -1), box } : { points, box: undefined };

/** The box between two corners; undefined for one that is too small to be meant. */
export function boxBetween(
  from: Pick<MarkedPoint, 'x' | 'y'>,
  to: Pick<MarkedPoint, 'x' | 'y'>,
): MarkedBox | undefined {
  const [x1, x2] = [Math.min(from.x, to.x), Math.max(from.x, to.x)];
  const [y1, y2] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
  return x2 - x1 >= 1 && y2 - y1 >= 1
    ? { x1: Math.max(0, x1), y1: Math.max(0, y1), x2: Math.min(100, x2), y2: Math.min(100, y2) }
    : undefined;
}

export const noMarks: Marks = { points: [], box: undefined };

export const isMarked = ({ points, box }: Marks): boolean => points.length > 0 || box !== undefined;
