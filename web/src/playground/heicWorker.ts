import openLibheif from 'libheif-js/libheif-wasm/libheif-bundle.mjs';
import { decodePrimary, type Pixels } from '../../../src/image/heif/libheif.ts';

/** Bytes of the pixels of the largest image that the service accepts. */
const maxPixelBytes = 4 * 50e6;

/** Answers the bytes of a HEIC with its pixels, or with undefined. */
addEventListener('message', ({ data }: MessageEvent<ArrayBuffer>) => {
  const silent = () => {};
  let pixels: Pixels | undefined;
  try {
    const libheif = openLibheif({ print: silent, printErr: silent });
    pixels = decodePrimary(libheif, new Uint8Array(data), maxPixelBytes);
  } catch {
    // The answer says it.
  }
  postMessage(pixels, { transfer: pixels ? [pixels.data] : [] });
});
