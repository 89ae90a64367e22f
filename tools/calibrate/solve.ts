import { quantiseConv } from '../../src/compiler/quantise/arithmetic.ts';
import {
  BIAS_STEPS,
  type QuantisationTable,
  scalesOf,
  type TensorEntry,
} from '../../src/compiler/quantise/table.ts';
import type { Convolution, Layers } from './layers.ts';
import { type Quantiles, USUAL_QUANTILE } from './ranges.ts';
import { BINS, bestRange, CENTRES, type TensorStatistics } from './statistics.ts';

const LEVELS = 255;
/** Levels per sign of a tensor with values of both signs, zero point 128. */
const SIGNED_LEVELS = 127;

/** Candidates for how much the steps of one tensor's channels differ: 0: one step for all; 1: one for each. */
const FREEDOMS = [0, 0.25, 0.5, 0.75, 1];

/** Mean rounding error of ONNX Runtime's 8-bit Resize, in steps: it rounds down. */
const CUT_OFF = 0.47;

/** Number of 8-bit channels whose sum represents a head; ONNX Runtime computes them together. */
const PARTS = 16;

/** Range of the matte's logit: beyond ±8 the matte is 0 or 1 in 8 bits. */
const LOGIT = { low: -8, high: 8 };

/** Statistics of one tensor over all photos. */
interface Merged {
  readonly channels: number;
  count: number;
  readonly histogram: Float64Array;
  readonly sum: Float64Array;
  readonly squares: Float64Array;
  signed: boolean;
  smallest: number;
  largest: number;
  /** Best range of each channel, photo by photo. */
  readonly ranges: Float64Array[];
}

export type Photos = Iterable<ReadonlyMap<string, TensorStatistics>>;

/** Merges the statistics of all photos by tensor. */
export function merge(photos: Photos): Map<string, Merged> {
  const all = new Map<string, Merged>();
  for (const photo of photos) {
    for (const [name, one] of photo) {
      const { channels } = one;
      let merged = all.get(name);
      if (!merged) {
        merged = {
          channels,
          count: 0,
          histogram: new Float64Array(channels * BINS),
          sum: new Float64Array(channels),
          squares: new Float64Array(channels),
          signed: false,
          smallest: 0,
          largest: 0,
          ranges: [],
        };
        all.set(name, merged);
      }
      merged.count += one.count;
      merged.signed ||= one.smallest.some((value) => value < 0);
      merged.smallest = Math.min(merged.smallest, ...one.smallest);
      merged.largest = Math.max(merged.largest, ...one.largest);
      for (const [i, value] of one.histogram.entries()) (merged.histogram[i] as number) += value;
      for (const [c, value] of one.sum.entries()) (merged.sum[c] as number) += value;
      for (const [c, value] of one.squares.entries()) (merged.squares[c] as number) += value;
      const levels = one.smallest.some((value) => value < 0) ? SIGNED_LEVELS : LEVELS;
      merged.ranges.push(Float64Array.from({ length: channels }, (_, c) => bestRange(one, c, levels)));
    }
  }
  return all;
}

class Solver {
  readonly #layers: Layers;
  readonly #all: Map<string, Merged>;
  readonly #quantiles: Quantiles;
  readonly #tensors: Record<string, TensorEntry> = {};
  readonly #readers = new Map<string, { convolution: Convolution; from: number }[]>();
  /** Mean square of a convolution's output. */
  readonly #power = new Map<Convolution, number>();

  constructor(layers: Layers, all: Map<string, Merged>, quantiles: Quantiles) {
    this.#layers = layers;
    this.#all = all;
    this.#quantiles = quantiles;
    for (const convolution of layers.convolutions) {
      const { squares, count, channels } = this.#merged(convolution.makes);
      this.#power.set(convolution, squares.reduce((a, b) => a + b, 0) / count / channels);
      let from = 0;
      for (const { source, channels: width } of convolution.reads) {
        const readers = this.#readers.get(source) ?? [];
        readers.push({ convolution, from });
        this.#readers.set(source, readers);
        from += width;
      }
    }
  }

  #merged(name: string): Merged {
    const merged = this.#all.get(name);
    if (!merged) throw new Error(`no statistics of ${name}`);
    return merged;
  }

  /** Range of a channel's magnitudes over the photos. */
  #range(name: string, channel: number): number {
    const sorted = this.#merged(name)
      .ranges.map((each) => each[channel] ?? 0)
      .sort((a, b) => a - b);
    const quantile = this.#quantiles[this.#layers.stageOf(name) ?? ''] ?? USUAL_QUANTILE;
    return sorted[Math.round((sorted.length - 1) * quantile)] ?? 0;
  }

  /** Mean squared quantisation error of a channel with steps of `step`. */
  #error({ histogram, count }: Merged, channel: number, step: number, levels: number): number {
    const top = step * levels;
    const end = step * (levels + 0.5);
    let error = 0;
    for (let bin = 0; bin < BINS; bin++) {
      const times = histogram[channel * BINS + bin] as number;
      if (times === 0) continue;
      const value = CENTRES[bin] as number;
      error +=
        times * (value > end ? (value - top) ** 2 : value < step / 2 ? value * value : (step * step) / 12);
    }
    return error / count;
  }

  /** Relative noise that 8-bit weights add to the outputs of the tensor's consumers if channels have these steps. */
  #weightNoise(merged: Merged, convolution: Convolution, from: number, steps: Float64Array): number {
    const { outputs, inputs, taps, weights } = convolution;
    let total = 0;
    for (let output = 0; output < outputs; output++) {
      let largest = 0;
      for (let c = 0; c < merged.channels; c++) {
        const at = (output * inputs + from + c) * taps;
        for (let tap = at; tap < at + taps; tap++) {
          largest = Math.max(largest, Math.abs(weights[tap] as number) * (steps[c] as number));
        }
      }
      for (let c = 0; c < merged.channels; c++) {
        total += ((largest / 127 / (steps[c] as number)) ** 2 * (merged.squares[c] as number)) / merged.count;
      }
    }
    return (total * taps) / 12 / outputs / (this.#power.get(convolution) ?? 1);
  }

  /** Relative noise that quantising the channels with these steps adds to the same outputs. */
  #valueNoise(merged: Merged, convolution: Convolution, from: number, errors: Float64Array): number {
    const { outputs, inputs, taps, weights } = convolution;
    let total = 0;
    for (let output = 0; output < outputs; output++) {
      for (let c = 0; c < merged.channels; c++) {
        const at = (output * inputs + from + c) * taps;
        let squares = 0;
        for (let tap = at; tap < at + taps; tap++) squares += (weights[tap] as number) ** 2;
        total += squares * (errors[c] as number);
      }
    }
    return total / outputs / (this.#power.get(convolution) ?? 1);
  }

  /**
   * Steps of a tensor's channels. A step for each channel fits its range best, but the weights that read it compensate
   * for the difference and lose precision. Returns the interpolation between both with the least noise in the
   * consumers' outputs.
   */
  #choose(name: string): Float64Array {
    const merged = this.#merged(name);
    const levels = merged.signed ? SIGNED_LEVELS : LEVELS;
    const own = Float64Array.from({ length: merged.channels }, (_, c) => this.#range(name, c) / levels);
    const widest = Math.max(...own);
    let best = own;
    let least = Number.POSITIVE_INFINITY;
    for (const freedom of FREEDOMS) {
      const steps = own.map((step) => (step > 0 ? step : widest * 1e-3) ** freedom * widest ** (1 - freedom));
      const errors = steps.map((step, c) => this.#error(merged, c, step, levels));
      let noise = 0;
      for (const { convolution, from } of this.#readers.get(name) ?? []) {
        noise += this.#valueNoise(merged, convolution, from, errors);
        noise += this.#weightNoise(merged, convolution, from, steps);
      }
      if (noise < least) {
        least = noise;
        best = steps;
      }
    }
    return best;
  }

  #enter(name: string, steps: Float64Array, zeroPoint: number): void {
    const sorted = [...steps].filter((step) => step > 0).sort((a, b) => a - b);
    const scale = Number((sorted[sorted.length >> 1] ?? 1).toPrecision(6));
    const channels = [...steps].map((step) => (step > 0 ? Math.round(8 * Math.log2(step / scale)) : 0));
    this.#tensors[name] = { scale, zeroPoint, ...(channels.some((each) => each !== 0) && { channels }) };
  }

  #steps(name: string): Float64Array {
    const entry = this.#tensors[name];
    if (!entry) throw new Error(`no steps of ${name} yet`);
    return scalesOf(entry, this.#merged(name).channels);
  }

  /** Maps that are added have the steps of their sum, up to a common factor. */
  #additions(): void {
    for (const { left, right, makes } of this.#layers.additions) {
      this.#enter(makes, this.#choose(makes), 0);
      const steps = this.#steps(makes);
      const entry = this.#tensors[makes] as TensorEntry;
      for (const name of [left, right]) {
        const needed = steps.reduce(
          (most, step, c) => Math.max(most, this.#range(name, c) / LEVELS / step),
          0,
        );
        this.#tensors[name] = { ...entry, scale: Number((entry.scale * Math.min(1, needed)).toPrecision(6)) };
      }
    }
  }

  /** Mean shift of each output by the rounding of weights, which the bias corrects. */
  #roundingShift({ reads, makes, outputs, inputs, taps, weights, bias }: Convolution): Float64Array {
    const inputSteps = Float64Array.from(reads.flatMap(({ source }) => [...this.#steps(source)]));
    const means = reads.flatMap(({ source }) => {
      const { sum, count } = this.#merged(source);
      return [...sum].map((value) => value / count);
    });
    const outputSteps = this.#steps(makes);
    const inputScale = Math.max(...reads.map(({ source }) => this.#tensors[source]?.scale ?? 0));
    const outputScale = this.#tensors[makes]?.scale ?? 1;
    const made = quantiseConv(weights, bias, inputSteps, outputSteps, inputScale, outputScale);
    return Float64Array.from({ length: outputs }, (_, output) => {
      let shift = 0;
      for (let c = 0; c < inputs; c++) {
        const back =
          (((made.weightScales[output] as number) * inputScale) / (inputSteps[c] as number)) *
          ((outputSteps[output] as number) / outputScale);
        let error = 0;
        const at = (output * inputs + c) * taps;
        for (let tap = at; tap < at + taps; tap++) {
          error += (made.weights[tap] as number) * back - (weights[tap] as number);
        }
        shift += error * (means[c] as number);
      }
      return -shift;
    });
  }

  /** Share of a channel's values that are above 0 in 8 bits. */
  #active(name: string): Float64Array {
    const { histogram, count } = this.#merged(name);
    return this.#steps(name).map((step, c) => {
      let times = 0;
      for (let bin = 0; bin < BINS; bin++) {
        if ((CENTRES[bin] as number) > step / 2) times += histogram[c * BINS + bin] as number;
      }
      return times / count;
    });
  }

  /**
   * Enlarging rounds down. A tensor that only enlargements read is rounded up instead: half a step more in the bias.
   * Where that is not possible (a sum, a map that others read too, one in floats), the bias of the consumers corrects
   * the mean.
   */
  #againstCutting(shifts: Map<Convolution, Float64Array>): void {
    const lost = new Map<string, Float64Array>();
    const enlarged = new Set(
      this.#layers.convolutions.flatMap(({ reads }) =>
        reads.filter((each) => each.enlarged > 0).map(({ source }) => source),
      ),
    );
    for (const name of enlarged) {
      const half = this.#steps(name).map((step) => step * CUT_OFF);
      const active = this.#active(name);
      const addition = this.#layers.additions.find((each) => each.makes === name);
      const maker = this.#layers.convolutions.find(({ makes }) => makes === (addition?.right ?? name));
      const shift = maker && shifts.get(maker);
      if (!shift || !this.#layers.onlyEnlarged(name)) {
        lost.set(
          name,
          half.map((amount, c) => amount * (active[c] as number)),
        );
        continue;
      }
      for (const [c, amount] of half.entries()) (shift[c] as number) += amount;
      if (!addition) continue;
      const raised = this.#active(addition.right);
      lost.set(
        name,
        half.map((amount, c) => amount * Math.max(0, (active[c] as number) - (raised[c] as number))),
      );
    }
    for (const convolution of this.#layers.convolutions) {
      const { reads, outputs, inputs, taps, weights } = convolution;
      const shift = shifts.get(convolution);
      let from = 0;
      for (const { source, channels, enlarged: times } of reads) {
        const amounts = times > 0 ? lost.get(source) : undefined;
        for (let output = 0; amounts && shift && output < outputs; output++) {
          for (let c = 0; c < channels; c++) {
            let sum = 0;
            const at = (output * inputs + from + c) * taps;
            for (let tap = at; tap < at + taps; tap++) sum += weights[tap] as number;
            (shift[output] as number) += sum * (amounts[c] as number);
          }
        }
        from += channels;
      }
    }
  }

  /** Range of a head: the full range over the photos for a head that is fused with others. */
  #head(tensor: string, alone: boolean): TensorEntry {
    const { smallest, largest } = this.#merged(tensor);
    const { low, high } = alone ? LOGIT : { low: Math.floor(smallest), high: Math.ceil(largest) };
    return { scale: (high - low) / (LEVELS * PARTS), zeroPoint: 0, steps: { count: PARTS, low } };
  }

  solve({ name: image, mean, std }: ImageInput): Omit<QuantisationTable, 'sourceSha256'> {
    const { heads, mixing, deepest } = this.#layers;
    const floats = [...deepest, ...mixing];
    const isHead = (tensor: string) => heads.some((head) => head.tensor === tensor);
    this.#additions();
    for (const [name, { signed }] of this.#all) {
      if (isHead(name) || this.#tensors[name]) continue;
      this.#enter(name, this.#choose(name), signed ? 128 : 0);
    }
    const shifts = new Map<Convolution, Float64Array>();
    for (const convolution of this.#layers.convolutions) {
      // The image's values are exact, and a head has several steps.
      if (isHead(convolution.makes) || floats.includes(convolution.name)) continue;
      const own = convolution.reads.length === 0;
      shifts.set(convolution, own ? new Float64Array(convolution.outputs) : this.#roundingShift(convolution));
    }
    this.#againstCutting(shifts);
    // One step for all colours: one level of the image where they are normalised alike.
    const low = Math.min(...mean.map((value, c) => (0 - value) / (std[c] ?? Number.NaN)));
    const high = Math.max(...mean.map((value, c) => (LEVELS - value) / (std[c] ?? Number.NaN)));
    const scale = (high - low) / LEVELS;
    this.#tensors[image] = { scale, zeroPoint: Math.round(-low / scale) };
    for (const { tensor, alone } of heads) this.#tensors[tensor] = this.#head(tensor, alone);
    const bias: Record<string, number[]> = {};
    for (const [{ name, makes }, shift] of shifts) {
      const steps = this.#steps(makes);
      const counted = [...shift].map((amount, c) => Math.round((BIAS_STEPS * amount) / (steps[c] as number)));
      if (counted.some((each) => each !== 0)) bias[name] = counted;
    }
    return { float: floats, tensors: this.#tensors, bias };
  }
}

/** The network's input and its normalisation. */
export interface ImageInput {
  readonly name: string;
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

/**
 * Computes the quantisation table from statistics that `merge` has joined. The same statistics and quantiles give the
 * same table.
 */
export function solve(
  layers: Layers,
  photos: Map<string, Merged>,
  quantiles: Quantiles,
  input: ImageInput,
): Omit<QuantisationTable, 'sourceSha256'> {
  return new Solver(layers, photos, quantiles).solve(input);
}
