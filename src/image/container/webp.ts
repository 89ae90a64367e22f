import { tooManyParts } from './scanLimits.ts';

/** Frames of an animation are chunks as well. */
const maxChunks = 10_000;

/** Throws ImageError for a WebP of too many chunks (RFC 9649, section 2.3): libwebp stores a record of each. */
export function checkWebp(webp: Uint8Array): void {
  const view = new DataView(webp.buffer, webp.byteOffset, webp.byteLength);
  if (webp.length < 12) return;
  // Bytes behind the end that the RIFF header states are ignored.
  const end = Math.min(webp.length, 8 + view.getUint32(4, true));
  let chunks = 0;
  for (let at = 12; at + 8 <= end; ) {
    chunks += 1;
    if (chunks > maxChunks) throw tooManyParts('chunks', maxChunks);
    const length = view.getUint32(at + 4, true);
    at += 8 + length + (length % 2);
  }
}
