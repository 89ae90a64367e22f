/** A mask of one byte a pixel; at least half of 255 is in. */
export interface Mask {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
}

export const isIn = (value: number | undefined): boolean => (value ?? 0) >= 128;

interface Deepest {
  readonly x: number;
  readonly y: number;
  /** Distance in pixels. */
  readonly depth: number;
}

/** The pixel that is farthest from everything outside the mask and from the image's border, by chamfer distances. */
export function deepestPoint({ data, width, height }: Mask): Deepest {
  const [straight, diagonal] = [3, 4];
  const distance = new Int32Array(width * height);
  const at = (x: number, y: number) =>
    x < 0 || y < 0 || x >= width || y >= height ? 0 : (distance[y * width + x] ?? 0);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      if (isIn(data[y * width + x]))
        distance[y * width + x] = Math.min(
          at(x - 1, y) + straight,
          at(x, y - 1) + straight,
          at(x - 1, y - 1) + diagonal,
          at(x + 1, y - 1) + diagonal,
        );
  let [deepest, most] = [0, -1];
  for (let y = height - 1; y >= 0; y--)
    for (let x = width - 1; x >= 0; x--) {
      const here = y * width + x;
      const value = Math.min(
        distance[here] ?? 0,
        at(x + 1, y) + straight,
        at(x, y + 1) + straight,
        at(x + 1, y + 1) + diagonal,
        at(x - 1, y + 1) + diagonal,
      );
      distance[here] = value;
      if (value > most) [deepest, most] = [here, value];
    }
  return { x: deepest % width, y: Math.floor(deepest / width), depth: most / straight };
}

/** Where a person would click next: the deepest point of what is missing, or of what is too much. */
export function nextClick(result: Mask, chosen: Uint8Array): Deepest & { readonly include: boolean } {
  const { width, height } = result;
  const wrong = (found: boolean): Mask => ({
    data: result.data.map((value, i) => (isIn(value) === found && isIn(chosen[i]) !== found ? 255 : 0)),
    width,
    height,
  });
  const [missing, surplus] = [deepestPoint(wrong(false)), deepestPoint(wrong(true))];
  return missing.depth >= surplus.depth ? { ...missing, include: true } : { ...surplus, include: false };
}

interface Edges {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** The smallest box with everything in the mask; undefined for an empty one. */
export function boundsOf({ data, width, height }: Mask): Edges | undefined {
  let [x1, y1, x2, y2] = [width, height, 0, 0];
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      if (!isIn(data[y * width + x])) continue;
      [x1, x2] = [Math.min(x1, x), Math.max(x2, x + 1)];
      [y1, y2] = [Math.min(y1, y), Math.max(y2, y + 1)];
    }
  return x2 > x1 ? { x1, y1, x2, y2 } : undefined;
}

/** The box with each edge moved by up to `share` of its side, within the image. */
export function jittered(
  { x1, y1, x2, y2 }: Edges,
  share: number,
  { width, height }: Pick<Mask, 'width' | 'height'>,
  random: () => number,
): Edges {
  const moved = (edge: number, side: number, end: number) =>
    Math.round(Math.min(Math.max(edge + (2 * random() - 1) * share * side, 0), end));
  return {
    x1: moved(x1, x2 - x1, width),
    y1: moved(y1, y2 - y1, height),
    x2: moved(x2, x2 - x1, width),
    y2: moved(y2, y2 - y1, height),
  };
}

export interface Agreement {
  /** Intersection over union with the chosen subject. */
  readonly iou: number;
  /** Share of the other subject's area that is left. */
  readonly left: number;
}

export function agreement(result: Mask, chosen: Uint8Array, other: Uint8Array): Agreement {
  let [both, either, left, others] = [0, 0, 0, 0];
  for (const [i, value] of result.data.entries()) {
    const [found, wanted] = [isIn(value), isIn(chosen[i])];
    if (found && wanted) both++;
    if (found || wanted) either++;
    if (!isIn(other[i]) || wanted) continue;
    others++;
    if (found) left++;
  }
  return { iou: either === 0 ? 1 : both / either, left: others === 0 ? 0 : left / others };
}

/** The connected parts of a mask that hold at least `share` of the image, from the left. */
export function components({ data, width, height }: Mask, share: number): Uint8Array[] {
  const labels = new Int32Array(width * height);
  const found: { readonly left: number; readonly mask: Uint8Array }[] = [];
  let label = 0;
  for (let start = 0; start < labels.length; start++) {
    if (!isIn(data[start]) || labels[start] !== 0) continue;
    const members = [start];
    labels[start] = ++label;
    for (let at = 0; at < members.length; at++) {
      const here = members[at] ?? 0;
      const x = here % width;
      for (const next of [x > 0 ? here - 1 : -1, x < width - 1 ? here + 1 : -1, here - width, here + width]) {
        if (next < 0 || next >= labels.length || labels[next] !== 0 || !isIn(data[next])) continue;
        labels[next] = label;
        members.push(next);
      }
    }
    if (members.length < share * labels.length) continue;
    const mask = new Uint8Array(labels.length);
    let sum = 0;
    for (const member of members) {
      mask[member] = 255;
      sum += member % width;
    }
    found.push({ left: sum / members.length, mask });
  }
  return found.sort((a, b) => a.left - b.left).map(({ mask }) => mask);
}
