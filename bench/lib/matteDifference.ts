/** The difference of two mattes with values 0 to 1. */
export interface MatteDifference {
  /** Mean of the absolute differences over all pixels. */
  readonly mean: number;
  /** The same where the reference is strictly between 0.02 and 0.98; 0 if it is nowhere. */
  readonly edge: number;
  /** Share of those pixels. */
  readonly edgeShare: number;
  readonly largest: number;
  /** Mean of the signed differences: how much more is kept. */
  readonly bias: number;
}

/** Differences of `found` from `reference`, pixel by pixel. Throws RangeError for planes of different lengths. */
export function matteDifference(reference: Float32Array, found: Float32Array): MatteDifference {
  if (reference.length !== found.length || reference.length === 0) {
    throw new RangeError(`planes of ${reference.length} and ${found.length} values`);
  }
  let [sum, signed, edge, edges, largest] = [0, 0, 0, 0, 0];
  for (let i = 0; i < reference.length; i++) {
    const wanted = reference[i] as number;
    const difference = (found[i] as number) - wanted;
    const size = Math.abs(difference);
    sum += size;
    signed += difference;
    if (size > largest) largest = size;
    if (wanted > 0.02 && wanted < 0.98) {
      edge += size;
      edges++;
    }
  }
  const { length } = reference;
  return {
    mean: sum / length,
    edge: edges === 0 ? 0 : edge / edges,
    edgeShare: edges / length,
    largest,
    bias: signed / length,
  };
}

/** Top left corner, on a grid of half its size, of the square of side `size` with the largest sum of differences. */
export function worstSquare(
  reference: Float32Array,
  found: Float32Array,
  { width, height }: { readonly width: number; readonly height: number },
  size: number,
): { readonly left: number; readonly top: number } {
  let best = { left: 0, top: 0 };
  let most = -1;
  const step = size >> 1;
  for (let top = 0; top + size <= height; top += step) {
    for (let left = 0; left + size <= width; left += step) {
      let sum = 0;
      for (let y = top; y < top + size; y++) {
        for (let at = y * width + left; at < y * width + left + size; at++) {
          sum += Math.abs((found[at] as number) - (reference[at] as number));
        }
      }
      if (sum > most) {
        most = sum;
        best = { left, top };
      }
    }
  }
  return best;
}
