/** Output channels of a group, inputs of a chunk: as native/low_precision/program.h has them. */
export const LANES = 16;
export const CHUNK = 64;

/** Returns the output channels of whole groups that hold `channels`. */
export const wholeGroups = (channels: number): number => Math.ceil(channels / LANES) * LANES;

/** Returns a matrix with rows and columns of zeros behind its own. */
export function padded(
  values: Float32Array,
  [rows, columns]: readonly [number, number],
  [allRows, allColumns]: readonly [number, number],
): Float32Array {
  if (rows === allRows && columns === allColumns) return values;
  const all = new Float32Array(allRows * allColumns);
  for (let row = 0; row < rows; row++)
    all.set(values.subarray(row * columns, (row + 1) * columns), row * allColumns);
  return all;
}

interface Taps {
  /** Height and width of the kernel. */
  readonly kernel: readonly [number, number];
  readonly dilation: number;
}

/**
 * Positions of the weights of each chunk's inputs within those of one output channel, [channels, height, width], in
 * the order in which native/low_precision/program.cc (chunks_of) reads a window; one list for a chunk, at most `most` long.
 */
function chunksOf({ kernel: [height, width], dilation }: Taps, channels: number, most: number): Int32Array[] {
  // Channels of neighbouring taps are adjacent, unless the taps are dilated or fill whole chunks anyway.
  const rows = dilation === 1 && width > 1 && channels % most !== 0;
  const length = rows ? width * channels : channels;
  const chunks: Int32Array[] = [];
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < (rows ? 1 : width); column++) {
      for (let from = 0; from < length; from += most) {
        const places = new Int32Array(Math.min(most, length - from));
        for (let i = 0; i < places.length; i++) {
          const channel = (from + i) % channels;
          const tap = row * width + column + Math.floor((from + i) / channels);
          places[i] = channel * height * width + tap;
        }
        chunks.push(places);
      }
    }
  }
  return chunks;
}

/**
 * Weights in the order in which the kernels read them: [group of 16 output channels][panel][chunk][16][16][4 bytes]; those
 * behind a chunk's last input are 0.
 * @param weights of each panel, each [outputs, channels, height, width]: 8-bit ones, the high and the low bytes of 16-bit
 * ones, or numbers of 16 bits; outputs a multiple of 16, channels of what 4 bytes hold
 */
export function pack(
  weights: readonly (Int8Array | Uint16Array)[],
  outputs: number,
  channels: number,
  taps: Taps,
): Int8Array {
  const bytes = weights[0]?.BYTES_PER_ELEMENT ?? 1;
  const together = 4 / bytes;
  const chunks = chunksOf(taps, channels, CHUNK / bytes);
  const row = channels * taps.kernel[0] * taps.kernel[1];
  const length = (outputs / LANES) * weights.length * chunks.length * (CHUNK / bytes) * LANES;
  const packed = bytes === 1 ? new Int8Array(length) : new Uint16Array(length);
  // The places of the inputs of a chunk, for one output channel.
  const order = Int32Array.from({ length: CHUNK / bytes }, (_, k) => k + (LANES - 1) * (k - (k % together)));
  let at = 0;
  for (let group = 0; group < outputs; group += LANES) {
    for (const panel of weights) {
      for (const places of chunks) {
        for (let lane = 0; lane < LANES; lane++) {
          const own = panel.subarray((group + lane) * row, (group + lane + 1) * row);
          const to = at + lane * together;
          for (let k = 0; k < places.length; k++)
            packed[to + (order[k] as number)] = own[places[k] as number] as number;
        }
        at += (CHUNK / bytes) * LANES;
      }
    }
  }
  return new Int8Array(packed.buffer);
}

/** Returns the nearest bf16 of each value, halves to the even one, as its bits: the upper 16 of a float. */
function bf16Bits(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const rounded = new Uint16Array(values.length);
  for (let i = 0; i < bits.length; i++) {
    const each = bits[i] as number;
    rounded[i] = (each + 0x7fff + ((each >>> 16) & 1)) >>> 16;
  }
  return rounded;
}

/** Returns the nearest float16 of each value, halves to the even one, as its bits; infinity beyond its range. */
function halfBits(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const rounded = new Uint16Array(values.length);
  for (let i = 0; i < bits.length; i++) {
    const each = bits[i] as number;
    const sign = (each >>> 16) & 0x8000;
    const size = each & 0x7fffffff;
    const exponent = (size >>> 23) - 112;
    let half: number;
    if (size > 0x7f800000)
      half = 0x7e00; // not a number
    else if (exponent > 30) half = 0x7c00;
    else {
      // Below the smallest normal number the units are those of 2^-24.
      const fraction = exponent > 0 ? size & 0x7fffff : (size & 0x7fffff) | 0x800000;
      const shift = exponent > 0 ? 13 : Math.min(14 - exponent, 31);
      const whole = (exponent > 0 ? exponent << 10 : 0) + (fraction >>> shift);
      const rest = fraction & ((1 << shift) - 1);
      const halfway = 1 << (shift - 1);
      // A carry goes into the exponent, where it belongs.
      half = whole + (rest > halfway || (rest === halfway && (whole & 1) === 1) ? 1 : 0);
    }
    rounded[i] = sign | half;
  }
  return rounded;
}

/** Number formats of 16 bits that weights are stored in: how their bits are made. */
const SIXTEEN = { bf16: bf16Bits, fp16: halfBits } as const;
export type Sixteen = keyof typeof SIXTEEN;

/** Packs weights in a format of 16 bits, with channels a multiple of 2. */
export const packSixteen = (
  weights: Float32Array,
  outputs: number,
  channels: number,
  taps: Taps,
  format: Sixteen,
): Int8Array => pack([SIXTEEN[format](weights)], outputs, channels, taps);

/** Number formats that Cutout's operators multiply a matrix in (native/low_precision/matrix.h). */
export type MatrixFormat = 'bf16' | 'int8';

/** The largest weight of 8 bits: two products with bytes then fit 16 bits. */
const LARGEST_WEIGHT = 64;

/**
 * Packs a matrix as native/low_precision/matrix.h reads it: the weights, and of each output the bias, or in 8 bits scale, sum
 * of the weights and bias, with zeros up to whole groups.
 * @param matrix [outputs, inputs]
 * @param bias of each output
 */
export function packMatrix(
  matrix: Float32Array,
  [outputs, inputs]: readonly [number, number],
  bias: Float32Array,
  format: MatrixFormat,
): { readonly weights: Int8Array; readonly constants: Float32Array } {
  const taps = { kernel: [1, 1], dilation: 1 } as const;
  const together = format === 'bf16' ? 2 : 4;
  const [made, read] = [wholeGroups(outputs), Math.ceil(inputs / together) * together];
  const all = padded(matrix, [outputs, inputs], [made, read]);
  const biases = padded(bias, [1, outputs], [1, made]);
  if (format === 'bf16') return { weights: packSixteen(all, made, read, taps, 'bf16'), constants: biases };
  const constants = new Float32Array(3 * made);
  const rounded = new Int8Array(all.length);
  for (let output = 0; output < outputs; output++) {
    const own = all.subarray(output * read, (output + 1) * read);
    const scale = own.reduce((largest, each) => Math.max(largest, Math.abs(each)), 0) / LARGEST_WEIGHT;
    let sum = 0;
    for (const [at, each] of own.entries()) {
      const weight = scale > 0 ? Math.round(each / scale) : 0;
      rounded[output * read + at] = weight;
      sum += weight;
    }
    constants[output] = scale;
    constants[made + output] = sum * scale;
  }
  constants.set(biases, 2 * made);
  return { weights: pack([rounded], made, read, taps), constants };
}
