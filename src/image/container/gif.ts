import { setImmediate as turn } from 'node:timers/promises';
import { scannedBytesPerTurn, tooManyParts } from './partLimits.ts';

/** Frames and extensions; a frame of an animation has one extension, and the file has a few. */
const maxBlocks = 20_000;

const [IMAGE, EXTENSION] = [0x2c, 0x21] as const;
const headerBytes = 13;
const imageBytes = 10;

/** Bytes of the colour table that the packed field of a header announces. */
const tableBytes = (packed: number): number => ((packed & 0x80) === 0 ? 0 : 3 * 2 ** ((packed & 7) + 1));

/**
 * Rejects with ImageError for a GIF of too many blocks (GIF89a, appendix B): nsgif reads all of them and stores a
 * record of each frame. Ends where nsgif does: at the trailer and at what is no block.
 */
export async function checkGif(gif: Uint8Array): Promise<void> {
  const byte = (at: number) => gif[at] ?? 0;
  let blocks = 0;
  let until = scannedBytesPerTurn;
  for (let at = headerBytes + tableBytes(byte(10)); at < gif.length; ) {
    const kind = gif[at];
    if (kind !== IMAGE && kind !== EXTENSION) return;
    blocks += 1;
    if (blocks > maxBlocks) throw tooManyParts('blocks', maxBlocks);
    // A frame: its header, colour table and the code size. An extension: its introducer and label.
    at += kind === IMAGE ? imageBytes + tableBytes(byte(at + 9)) + 1 : 2;
    // Sub-blocks, up to an empty one.
    for (; byte(at) !== 0; at += 1 + byte(at)) {
      if (at < until) continue;
      await turn();
      until = at + scannedBytesPerTurn;
    }
    at += 1;
  }
}
