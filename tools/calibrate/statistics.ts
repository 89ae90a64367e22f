/** Histogram bins of a sixteenth of an octave, from 2^-20: the upper bits of a float are its bin. */
export const BINS = 512;
const SHIFT = 19;
const FIRST = (127 - 20) << 4;

const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/** The middle of each bin. */
export const CENTRES: Float64Array = Float64Array.from({ length: BINS }, (_, bin) => {
  bits[0] = ((bin + FIRST) << SHIFT) + (1 << (SHIFT - 1));
  return float[0] ?? Number.NaN;
});

/** Bin of a positive number, 0 to BINS. */
function binOf(value: number): number {
  float[0] = value;
  return Math.max(0, Math.min(BINS, ((bits[0] ?? 0) >> SHIFT) - FIRST));
}

/** Statistics of one tensor for one photo, by channel. */
export interface TensorStatistics {
  readonly channels: number;
  /** Values of one channel. */
  readonly count: number;
  /** [channels, BINS]: number of magnitudes in each bin; zeros are not counted. */
  readonly histogram: Uint32Array;
  readonly sum: Float64Array;
  readonly squares: Float64Array;
  readonly largest: Float64Array;
  readonly smallest: Float64Array;
}

/** Counts a tensor [1, channels, H, W]. */
export function statisticsOf(data: Float32Array, channels: number): TensorStatistics {
  const count = data.length / channels;
  const words = new Int32Array(data.buffer, data.byteOffset, data.length);
  const made = {
    channels,
    count,
    histogram: new Uint32Array(channels * BINS),
    sum: new Float64Array(channels),
    squares: new Float64Array(channels),
    largest: new Float64Array(channels),
    smallest: new Float64Array(channels),
  };
  for (let c = 0; c < channels; c++) {
    let [sum, squares, largest, smallest] = [0, 0, 0, 0];
    for (let i = c * count; i < (c + 1) * count; i++) {
      const value = data[i] as number;
      if (value === 0) continue;
      sum += value;
      squares += value * value;
      if (value > largest) largest = value;
      if (value < smallest) smallest = value;
      const bin = (((words[i] as number) & 0x7fffffff) >> SHIFT) - FIRST;
      (made.histogram[c * BINS + Math.max(0, bin)] as number)++;
    }
    made.sum[c] = sum;
    made.squares[c] = squares;
    made.largest[c] = largest;
    made.smallest[c] = smallest;
  }
  return made;
}

/**
 * Range of a channel's magnitudes with the least squared error in `levels` steps: a wider one has coarser steps, a
 * narrower one clips the largest values. 0 for a channel that is always 0.
 */
export function bestRange(statistics: TensorStatistics, channel: number, levels: number): number {
  const { histogram, largest, smallest } = statistics;
  const top = Math.max(largest[channel] ?? 0, -(smallest[channel] ?? 0));
  if (top === 0) return 0;
  // Sums over all bins from one on: of counts, of values, of squares.
  const sums = [0, 1, 2].map(() => new Float64Array(BINS + 1)) as [Float64Array, Float64Array, Float64Array];
  for (let bin = BINS - 1; bin >= 0; bin--) {
    const count = histogram[channel * BINS + bin] as number;
    const centre = CENTRES[bin] as number;
    sums[0][bin] = (sums[0][bin + 1] as number) + count;
    sums[1][bin] = (sums[1][bin + 1] as number) + count * centre;
    sums[2][bin] = (sums[2][bin + 1] as number) + count * centre * centre;
  }
  const at = (power: 0 | 1 | 2, bin: number) => sums[power][bin] as number;
  let best = top;
  let least = Number.POSITIVE_INFINITY;
  for (let eighth = 0; eighth <= 40; eighth++) {
    const range = top * 2 ** (-eighth / 8);
    const step = range / levels;
    const above = Math.min(BINS, binOf(range) + 1);
    const below = binOf(step / 2);
    const error =
      at(2, above) -
      2 * range * at(1, above) +
      range * range * at(0, above) +
      ((at(0, below) - at(0, above)) * step * step) / 12 +
      (at(2, 0) - at(2, below));
    if (error < least) {
      least = error;
      best = range;
    }
  }
  return best;
}
