import type { Box } from '../engine/types.ts';

/** One value per side of a rectangle. */
export interface Sides<T> {
  readonly top: T;
  readonly right: T;
  readonly bottom: T;
  readonly left: T;
}

/** The box enlarged by `by` pixels on each side. */
export const outset = (box: Box, by: Sides<number>): Box => ({
  left: box.left - by.left,
  top: box.top - by.top,
  width: box.width + by.left + by.right,
  height: box.height + by.top + by.bottom,
});

export const moved = (box: Box, x: number, y: number): Box => ({
  ...box,
  left: box.left + x,
  top: box.top + y,
});

function boxBetween(left: number, top: number, right: number, bottom: number): Box {
  return { left, top, width: right - left, height: bottom - top };
}

const right = (box: Box) => box.left + box.width;
const bottom = (box: Box) => box.top + box.height;

/** Bounding box of both. */
export const join = (a: Box, b: Box): Box =>
  boxBetween(
    Math.min(a.left, b.left),
    Math.min(a.top, b.top),
    Math.max(right(a), right(b)),
    Math.max(bottom(a), bottom(b)),
  );

/** Intersection of two boxes that overlap. */
export const overlap = (a: Box, b: Box): Box =>
  boxBetween(
    Math.max(a.left, b.left),
    Math.max(a.top, b.top),
    Math.min(right(a), right(b)),
    Math.min(bottom(a), bottom(b)),
  );

/** Whether `inner` has an area and lies inside `outer`. */
export const isInside = (inner: Box, outer: Box): boolean =>
  inner.width > 0 &&
  inner.height > 0 &&
  inner.left >= outer.left &&
  inner.top >= outer.top &&
  right(inner) <= right(outer) &&
  bottom(inner) <= bottom(outer);

export const sameBox = (a: Box, b: Box): boolean =>
  a.left === b.left && a.top === b.top && a.width === b.width && a.height === b.height;
