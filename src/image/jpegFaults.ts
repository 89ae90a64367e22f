/**
 * Whether libjpeg would warn before the first scan of a fault that does not affect the image: stray bytes
 * between segments, a JFIF version other than 1, spectral bounds in a sequential scan (some cameras write 0 0
 * 0). Determined from the bytes, because libvips' error texts are unreliable with concurrent jobs.
 */
export function hasHarmlessFaults(jpeg: Uint8Array): boolean {
  const view = new DataView(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength);
  let sequential = false;
  for (let at = 2; at + 4 <= jpeg.length; ) {
    const marker = jpeg[at + 1];
    if (jpeg[at] !== 0xff) return true;
    if (marker === 0xff) {
      at += 1; // fill byte
      continue;
    }
    const end = at + 2 + view.getUint16(at + 2);
    if (end > jpeg.length) return false;
    if (marker === 0xc0 || marker === 0xc1) sequential = true;
    const isJfif = marker === 0xe0 && end - at >= 16 && view.getUint32(at + 4) === 0x4a464946;
    if (isJfif && jpeg[at + 9] !== 1) return true;
    if (marker === 0xda) {
      const [from, to, approximation] = jpeg.subarray(end - 3, end);
      return sequential && !(from === 0 && to === 63 && approximation === 0);
    }
    at = end;
  }
  return false;
}
