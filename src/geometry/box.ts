import type { Box } from '../engine/types.ts';

/** One value for each side of a rectangle. */
export interface Sides<T> {
  readonly top: T;
  readonly right: T;
  readonly bottom: T;
  readonly left: T;
}

/** A box grown by so many pixels on each side. */
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

/** Smallest box with both. */
export const join = (a: Box, b: Box): Box =>
  boxBetween(
    Math.min(a.left, b.left),
    Math.min(a.top, b.top),
    Math.max(right(a), right(b)),
    Math.max(bottom(a), bottom(b)),
  );

/** What lies in both, for boxes that overlap. */
export const overlap = (a: Box, b: Box): Box =>
  boxBetween(
    Math.max(a.left, b.left),
    Math.max(a.top, b.top),
    Math.min(right(a), right(b)),
    Math.min(bottom(a), bottom(b)),
  );

/** True if `inner` has an area and no pixel outside `outer`. */
export const isInside = (inner: Box, outer: Box): boolean =>
  inner.width > 0 &&
  inner.height > 0 &&
  inner.left >= outer.left &&
  inner.top >= outer.top &&
  right(inner) <= right(outer) &&
  bottom(inner) <= bottom(outer);

export const sameBox = (a: Box, b: Box): boolean =>
  a.left === b.left && a.top === b.top && a.width === b.width && a.height === b.height;
