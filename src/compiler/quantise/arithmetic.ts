/** Largest magnitude of an 8-bit weight: -128 is not used, so that weights are symmetric around zero point 0. */
const WEIGHT_LIMIT = 127;

/** Largest magnitude of a 32-bit bias; leaves headroom for the sum of the convolution. */
const BIAS_LIMIT = 2 ** 30;

/** Weights and bias of a convolution in 8 bits. */
export interface QuantisedConv {
  /** int8, shape of the given weights: [outputs, rest]. */
  readonly weights: Int8Array;
  /** Real value of one step of the weights, per output channel. */
  readonly weightScales: Float32Array;
  /** int32, in steps of inputScale * weightScales[output]. */
  readonly bias: Int32Array;
}

/** Returns the 8-bit weight nearest to a value. */
function levelOf(value: number, step: number): number {
  const level = Math.floor(value / step + 0.5);
  return Math.min(Math.max(level, -WEIGHT_LIMIT), WEIGHT_LIMIT);
}

/**
 * Returns the step that quantises `values` with the least squared error. Candidates range from the step that just
 * represents the largest value down to steps that clip it, where the error of many small values shrinks by
 * more than that of the few large ones grows.
 */
function bestStep(values: Float64Array, largest: number): number {
  let best = largest / WEIGHT_LIMIT;
  let least = Number.POSITIVE_INFINITY;
  for (let part = 100; part >= 80; part -= 10) {
    const step = (largest * part) / 100 / WEIGHT_LIMIT;
    let error = 0;
    for (let i = 0; i < values.length; i++) {
      const value = values[i] as number;
      const off = value - levelOf(value, step) * step;
      error += off * off;
    }
    if (error < least) {
      least = error;
      best = step;
    }
  }
  return best;
}

/**
 * Writes the weights of an output channel, [inputs, taps], times the factor of each input to `row`. Returns the largest
 * magnitude.
 */
function multiply(
  weights: Float32Array,
  factorOf: (input: number) => number,
  inputs: number,
  row: Float64Array,
): number {
  const taps = row.length / inputs;
  let largest = 0;
  for (let input = 0, i = 0; input < inputs; input++) {
    const factor = factorOf(input);
    for (const end = i + taps; i < end; i++) {
      const value = (weights[i] as number) * factor;
      row[i] = value;
      if (value > largest) largest = value;
      else if (-value > largest) largest = -value;
    }
  }
  return largest;
}

/**
 * Quantises weights and bias of a convolution whose input and output are 8-bit. Channel c of the input
 * represents q * inputScales[c], of the output q * outputScales[c]; ONNX has one scale per tensor, so the
 * per-channel scales are folded into the weights, which have a scale per output channel.
 * @param weights [outputs, inputs, taps], row-major; not changed
 * @param bias [outputs]
 * @param inputScale and @param outputScale are the scales of the tensors as written to the file
 */
export function quantiseConv(
  weights: Float32Array,
  bias: Float32Array,
  inputScales: Float64Array,
  outputScales: Float64Array,
  inputScale: number,
  outputScale: number,
): QuantisedConv {
  const outputs = bias.length;
  const result = {
    weights: new Int8Array(weights.length),
    weightScales: new Float32Array(outputs),
    bias: new Int32Array(outputs),
  };
  const row = new Float64Array(weights.length / outputs);
  for (let output = 0; output < outputs; output++) {
    const gain = outputScale / (outputScales[output] ?? Number.NaN);
    const at = output * row.length;
    const factorOf = (input: number) => ((inputScales[input] as number) / inputScale) * gain;
    const largest = multiply(weights.subarray(at, at + row.length), factorOf, inputScales.length, row);
    const wanted = (bias[output] ?? Number.NaN) * gain;
    // In a channel with (almost) no weights the step must still let the bias fit 32 bits.
    const floor = Math.max(Math.abs(wanted) / BIAS_LIMIT / inputScale, Number.MIN_VALUE, 1e-30);
    const step = Math.fround(Math.max(largest === 0 ? 0 : bestStep(row, largest), floor));
    result.weightScales[output] = step;
    result.bias[output] = Math.round(wanted / (inputScale * step));
    for (let i = 0; i < row.length; i++) result.weights[at + i] = levelOf(row[i] as number, step);
  }
  return result;
}

/** Largest weight of 16 bits: 256 * 127 for the high byte, and what the low one adds. */
const LIMIT_OF_16_BITS = 256 * 127;

/**
 * Quantises weights of a convolution to 16 bits in two bytes, with a bias in steps of a scale per output channel. Channel
 * c of the input represents (q - zero) * inputScales[c], which is folded into the weights. Throws a RangeError for a bias
 * that does not fit 32 bits.
 * @param weights [outputs, inputs, taps], row-major; not changed
 * @param bias [outputs]
 */
export function quantiseTo16Bits(
  weights: Float32Array,
  bias: Float32Array,
  inputScales: Float32Array,
  zero: number,
): { high: Int8Array; low: Int8Array; bias: Int32Array; scales: Float32Array } {
  const outputs = bias.length;
  const result = {
    high: new Int8Array(weights.length),
    low: new Int8Array(weights.length),
    bias: new Int32Array(outputs),
    scales: new Float32Array(outputs),
  };
  const row = new Float64Array(weights.length / outputs);
  for (let output = 0; output < outputs; output++) {
    const at = output * row.length;
    const factorOf = (input: number) => inputScales[input] as number;
    const largest = multiply(weights.subarray(at, at + row.length), factorOf, inputScales.length, row);
    const wanted = bias[output] as number;
    // In a channel with (almost) no weights the scale must still let the bias fit 32 bits.
    const step = Math.fround(Math.max(largest / LIMIT_OF_16_BITS, Math.abs(wanted) / 2 ** 29, 1e-30));
    let sum = 0;
    for (let i = 0; i < row.length; i++) {
      // The magnitude is at most the limit: rounding of the scale itself is far below half a level.
      const units = Math.floor((row[i] as number) / step + 0.5) | 0;
      const upper = (units + 128) >> 8;
      result.high[at + i] = upper;
      result.low[at + i] = units - (upper << 8);
      sum += units;
    }
    result.scales[output] = step;
    const shift = Math.round(wanted / step) - zero * sum;
    if (Math.abs(shift) > BIAS_LIMIT) throw new RangeError('a bias is too large for 32 bits');
    result.bias[output] = shift;
  }
  return result;
}
