import type { Box, ComposePlan, DropShadow } from '../engine/types.ts';
import type { Dimensions } from '../image/types.ts';
import { isInside, moved, overlap, sameBox } from './box.ts';
import { cropBox, largestCrop, type Margin } from './crop.ts';
import { type Position, placedBox, type Scale } from './place.ts';
import { dropShadow } from './shadow.ts';

/** Geometry options of a request, applied after its matte is known. */
export interface Geometry {
  readonly crop: boolean;
  /** Used with `crop` only. */
  readonly cropMargin: Margin;
  readonly scale: Scale;
  /** Default: unchanged, or centred if `scale` is a percentage. */
  readonly position: Position | undefined;
  /** Peak opacity of the drop shadow, 0 to 1; 0: none. */
  readonly shadowOpacity: number;
}

/** The geometry of a result in whole pixels, as the engine's `compose` takes it. */
interface Composition extends Pick<ComposePlan, 'width' | 'height' | 'source' | 'target'> {
  readonly subject: Box;
  readonly shadow?: DropShadow;
}

const wholeOf = ({ width, height }: Dimensions): Box => ({ left: 0, top: 0, width, height });

/**
 * Applies crop and margin, then scale and position, then shadow (docs/contract.md sections 4 and 6).
 *
 * A subject that is neither scaled nor moved keeps its surroundings: `source` is the part of the image that
 * the canvas shows, and is copied. Otherwise `source` is the subject's box, and `target` is at least as
 * large, or at most as large, in both directions.
 *
 * @param image size of the decoded image @param subject its box of alpha > 0 @throws RangeError if the
 * subject is empty or not inside the image
 */
export function composition(image: Dimensions, subject: Box, geometry: Geometry): Composition {
  const whole = wholeOf(image);
  if (!isInside(subject, whole)) {
    throw new RangeError(`subject ${JSON.stringify(subject)} is not inside ${JSON.stringify(image)}`);
  }
  const { crop, cropMargin, scale, position, shadowOpacity } = geometry;
  const shown = crop ? cropBox(image, subject, cropMargin, shadowOpacity) : whole;
  const { width, height } = shown;
  const before = moved(subject, -shown.left, -shown.top);
  const after = placedBox(shown, before, scale, position);
  const shadow = shadowOpacity > 0 && { shadow: dropShadow(after, height, shadowOpacity) };
  if (!sameBox(before, after)) {
    return { width, height, source: subject, target: after, subject: after, ...shadow };
  }
  const source = overlap(whole, shown);
  const target = moved(source, -shown.left, -shown.top);
  return { width, height, source, target, subject: after, ...shadow };
}

/** Whether the result is the image unchanged. */
export const isIdentity = (image: Dimensions, { width, height, source, target, shadow }: Composition) =>
  shadow === undefined &&
  sameBox(wholeOf(image), wholeOf({ width, height })) &&
  sameBox(wholeOf(image), source) &&
  sameBox(source, target);

/** Upper bound of the size of any result of this image, whatever its subject; for reserving memory. */
export const largestCanvas = (
  { width, height }: Dimensions,
  { crop, cropMargin, shadowOpacity }: Geometry,
): Dimensions => (crop ? largestCrop({ width, height }, cropMargin, shadowOpacity) : { width, height });
