/** Output channels of a group, inputs of a chunk: as native/integer/program.h has them. */
export const LANES = 16;
export const CHUNK = 64;

export interface Taps {
  /** Height and width of the kernel. */
  readonly kernel: readonly [number, number];
  readonly dilation: number;
}

/**
 * Positions of the weights of each chunk's inputs within those of one output channel, [channels, height, width], in
 * the order in which native/integer/program.cc (chunks_of) reads a window; one list for a chunk, at most CHUNK long.
 */
function chunksOf({ kernel: [height, width], dilation }: Taps, channels: number): Int32Array[] {
  // Channels of neighbouring taps are adjacent, unless the taps are dilated or fill whole chunks anyway.
  const rows = dilation === 1 && width > 1 && channels % CHUNK !== 0;
  const length = rows ? width * channels : channels;
  const chunks: Int32Array[] = [];
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < (rows ? 1 : width); column++) {
      for (let from = 0; from < length; from += CHUNK) {
        const places = new Int32Array(Math.min(CHUNK, length - from));
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
 * Weights in the order in which the kernels read them: [group of 16 output channels][panel][chunk][16][16][4]; those
 * behind a chunk's last input are 0.
 * @param weights 8-bit weights, or the high and the low bytes of 16-bit ones, each [outputs, channels, height, width];
 * outputs a multiple of 16, channels of 4
 */
export function pack(
  weights: readonly Int8Array[],
  outputs: number,
  channels: number,
  taps: Taps,
): Int8Array {
  const [height, width] = taps.kernel;
  const chunks = chunksOf(taps, channels);
  const row = channels * height * width;
  // Four weights at a time, as one little-endian number.
  const packed = new Int32Array((outputs / LANES) * weights.length * chunks.length * (CHUNK / 4) * LANES);
  let at = 0;
  for (let group = 0; group < outputs; group += LANES) {
    for (const bytes of weights) {
      for (const places of chunks) {
        for (let lane = 0; lane < LANES; lane++) {
          const own = bytes.subarray((group + lane) * row, (group + lane + 1) * row);
          let to = at + lane;
          for (let k = 0; k < places.length; k += 4) {
            packed[to] =
              ((own[places[k] as number] as number) & 255) |
              (((own[places[k + 1] as number] as number) & 255) << 8) |
              (((own[places[k + 2] as number] as number) & 255) << 16) |
              ((own[places[k + 3] as number] as number) << 24);
            to += LANES;
          }
        }
        at += (CHUNK / 4) * LANES;
      }
    }
  }
  return new Int8Array(packed.buffer);
}
