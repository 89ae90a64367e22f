import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import sharp from 'sharp';
import { inRoot } from '../../scripts/setup/paths.js';

/** A photograph with a clear subject and a busy background, 6 MP. */
const PHOTO = inRoot('..', 'shared', 'data', 'isnet_demo', 'dimitarpg13', 'inputs', 'jazz_player.jpeg');

/** Deterministic noise in -1..1, so that two runs measure the same bytes. */
function noise(count, seed = 1) {
  const values = new Float32Array(count);
  let state = seed;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    values[i] = (state >> 8) / 2 ** 23;
  }
  return values;
}

async function drawn(width, height) {
  const svg = `<svg width="${width}" height="${height}" viewBox="0 0 400 300">
    <rect width="400" height="300" fill="#7a8f6b"/><rect y="210" width="400" height="90" fill="#5d5348"/>
    <ellipse cx="200" cy="240" rx="90" ry="90" fill="#b03a2e"/><circle cx="200" cy="110" r="58" fill="#e0ac85"/>
    <path d="M142 105 q10 -75 58 -70 q60 -5 58 75 q-20 -45 -60 -42 q-40 0 -56 37" fill="#3b2416"/></svg>`;
  return sharp(Buffer.from(svg)).removeAlpha().raw().toBuffer();
}

/**
 * A JPEG of about `megapixels`, 4:3, with the grain a camera leaves: enlarging alone would make a picture
 * that is far easier to encode than a real one.
 */
export async function photo(megapixels) {
  const width = Math.round(Math.sqrt((megapixels * 1e6 * 4) / 3));
  const height = Math.floor((megapixels * 1e6) / width);
  const pixels = existsSync(PHOTO)
    ? await sharp(await readFile(PHOTO))
        .resize(width, height, { fit: 'cover' })
        .removeAlpha()
        .raw()
        .toBuffer()
    : await drawn(width, height);
  const grain = noise(width * height);
  for (let i = 0; i < pixels.length; i++) {
    pixels[i] = Math.max(0, Math.min(255, Math.round(pixels[i] + 6 * grain[Math.trunc(i / 3)])));
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 90 })
    .toBuffer();
}
