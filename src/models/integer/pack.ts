/** Output channels of a group, inputs of a chunk: as native/integer/program.h has them. */
export const LANES = 16;
const CHUNK = 64;

export interface Taps {
  /** Height and width of the kernel. */
  readonly kernel: readonly [number, number];
  readonly dilation: number;
}

/** Tap and channel of each input of a chunk; behind the last one weights are 0. */
interface Chunk {
  readonly row: number;
  readonly inputs: readonly { readonly column: number; readonly channel: number }[];
}

/** The order in which native/integer/program.cc (chunks_of) reads the inputs of a window. */
function chunksOf({ kernel: [height, width], dilation }: Taps, channels: number): Chunk[] {
  // Channels of neighbouring taps lie side by side, unless taps are apart or fill whole chunks anyway.
  const rows = dilation === 1 && width > 1 && channels % CHUNK !== 0;
  const chunks: Chunk[] = [];
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < (rows ? 1 : width); column++) {
      const length = rows ? width * channels : channels;
      for (let from = 0; from < length; from += CHUNK) {
        const inputs = Array.from({ length: Math.min(CHUNK, length - from) }, (_, i) => ({
          column: column + Math.floor((from + i) / channels),
          channel: (from + i) % channels,
        }));
        chunks.push({ row, inputs });
      }
    }
  }
  return chunks;
}

/**
 * Weights in the order in which the kernels read them: [group of 16 output channels][plane][chunk][16][16][4].
 * @param planes each int8, [outputs, channels, height, width]; outputs a multiple of 16
 */
export function pack(planes: readonly Int8Array[], outputs: number, channels: number, taps: Taps): Int8Array {
  const [height, width] = taps.kernel;
  const chunks = chunksOf(taps, channels);
  const packed = new Int8Array((outputs / LANES) * planes.length * chunks.length * CHUNK * LANES);
  let at = 0;
  for (let group = 0; group < outputs; group += LANES) {
    for (const plane of planes) {
      for (const { row, inputs } of chunks) {
        for (const [k, { column, channel }] of inputs.entries()) {
          const to = at + (k >> 2) * LANES * 4 + (k & 3);
          let from = ((group * channels + channel) * height + row) * width + column;
          for (let lane = 0; lane < LANES; lane++) {
            packed[to + lane * 4] = plane[from] as number;
            from += channels * height * width;
          }
        }
        at += CHUNK * LANES;
      }
    }
  }
  return packed;
}
