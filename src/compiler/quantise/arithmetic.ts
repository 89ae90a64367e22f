/** Largest magnitude of an 8-bit weight: -128 is not used, so that weights are symmetric around zero point 0. */
const WEIGHT_LIMIT = 127;

/** Largest magnitude of a 32-bit bias; leaves headroom for the sum of the convolution. */
const BIAS_LIMIT = 2 ** 30;

interface QuantisedConv {
  /** int8, shape of the given weights: [outputs, rest]. */
  readonly weights: Int8Array;
  /** Real value of one step of the weights, per output channel. */
  readonly weightScales: Float32Array;
  /** int32, in steps of inputScale * weightScales[output]. */
  readonly bias: Int32Array;
}

/** The 8-bit weight nearest to a value. */
function levelOf(value: number, step: number): number {
  const level = Math.floor(value / step + 0.5);
  return level > WEIGHT_LIMIT ? WEIGHT_LIMIT : level < -WEIGHT_LIMIT ? -WEIGHT_LIMIT : level;
}

/**
 * Step that quantises `values` with the least squared error. Candidates range from the step that just
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
 * Quantises weights and bias of a convolution whose input and output are 8-bit. Channel c of the input
 * represents q * inputScales[c], of the output q * outputScales[c]; ONNX has one scale per tensor, so the
 * per-channel scales are folded into the weights, which have a scale per output channel. @param weights
 * [outputs, inputs, taps], row-major; not changed @param bias [outputs] @param inputScale and @param
 * outputScale are the scales of the tensors as written to the file
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
  const inputs = inputScales.length;
  const taps = weights.length / (outputs * inputs);
  const result = {
    weights: new Int8Array(weights.length),
    weightScales: new Float32Array(outputs),
    bias: new Int32Array(outputs),
  };
  const row = new Float64Array(inputs * taps);
  for (let output = 0; output < outputs; output++) {
    const gain = outputScale / (outputScales[output] ?? Number.NaN);
    const at = output * row.length;
    let largest = 0;
    for (let input = 0, i = 0; input < inputs; input++) {
      const folded = ((inputScales[input] as number) / inputScale) * gain;
      for (const end = i + taps; i < end; i++) {
        const value = (weights[at + i] as number) * folded;
        row[i] = value;
        if (value > largest) largest = value;
        else if (-value > largest) largest = -value;
      }
    }
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
