import { tooManyParts } from './partLimits.ts';
import { checkLossless } from './vp8l.ts';

/** Frames of an animation are chunks as well. */
const maxChunks = 10_000;

interface Chunk {
  readonly type: string;
  readonly data: Uint8Array;
}

/** What is coded without loss of an image or a first frame: itself, or its alpha. */
const maxLossless = 2;
/** Bytes of a frame of an animation before its chunks. */
const frameBytes = 16;

const u24 = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) + (bytes[at + 1] ?? 0) * 2 ** 8 + (bytes[at + 2] ?? 0) * 2 ** 16;

/** Chunks of a file or of a frame, from `at` on. */
function* chunksOf(bytes: Uint8Array, at: number, end: number): Generator<Chunk> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let from = at; from + 8 <= end; ) {
    const length = view.getUint32(from + 4, true);
    const type = String.fromCharCode(...bytes.subarray(from, from + 4));
    yield { type, data: bytes.subarray(from + 8, Math.min(end, from + 8 + length)) };
    from += 8 + length + (length % 2);
  }
}

/** Checks what is coded without loss: an image, or the alpha of one of these sides. */
async function checkCoded({ type, data }: Chunk, width: number, height: number): Promise<void> {
  if (type === 'VP8L') {
    // A signature of 8 bits, twice 14 bits, one that says whether there is alpha, and a version of three.
    const sides = u24(data, 1) + (data[4] ?? 0) * 2 ** 24;
    await checkLossless(data.subarray(5), (sides & 0x3fff) + 1, ((sides >>> 14) & 0x3fff) + 1);
  } else if (((data[0] ?? 0) & 3) === 1) await checkLossless(data.subarray(1), width, height);
}

const isLossless = ({ type }: Chunk): boolean => type === 'VP8L' || type === 'ALPH';

/**
 * Rejects with ImageError for a WebP of too many chunks (RFC 9649, section 2.3), of which libwebp stores a record of each, or with more
 * groups of codes than an image has. Of an animation only the first frame is decoded.
 */
export async function checkWebp(webp: Uint8Array): Promise<void> {
  const view = new DataView(webp.buffer, webp.byteOffset, webp.byteLength);
  if (webp.length < 12) return;
  // Bytes behind the end that the RIFF header states are ignored.
  const end = Math.min(webp.length, 8 + view.getUint32(4, true));
  let [chunks, frames, lossless, width, height] = [0, 0, 0, 0, 0];
  const check = async (chunk: Chunk, columns: number, rows: number) => {
    if (!isLossless(chunk)) return;
    lossless += 1;
    if (lossless > maxLossless) throw tooManyParts('images', maxLossless);
    await checkCoded(chunk, columns, rows);
  };
  for (const chunk of chunksOf(webp, 12, end)) {
    chunks += 1;
    if (chunks > maxChunks) throw tooManyParts('chunks', maxChunks);
    const { type, data } = chunk;
    if (type === 'VP8X') [width, height] = [u24(data, 4) + 1, u24(data, 7) + 1];
    await check(chunk, width, height);
    if (type !== 'ANMF') continue;
    frames += 1;
    if (frames === 1)
      for (const inner of chunksOf(data, frameBytes, data.length))
        await check(inner, u24(data, 6) + 1, u24(data, 9) + 1);
  }
}
