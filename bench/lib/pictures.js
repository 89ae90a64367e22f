import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import sharp from 'sharp';
import { inRoot } from '../../scripts/setup/paths.js';

const DATA = inRoot('..', 'shared', 'data');

/**
 * What is measured. A peer's time depends on the contents (it counts the colours of the result), so there are two:
 * a detailed photograph of 17 MP, only ever reduced, and a portrait, whose subject fills the frame.
 */
const PHOTOS = {
  scene: { file: path.join(DATA, 'hires_photos', 'Bryggen.jpg'), grain: 0 },
  // Enlarged to 12 MP; the grain a camera leaves keeps it from being far easier to encode than a real one.
  portrait: {
    file: path.join(DATA, 'isnet_demo', 'dimitarpg13', 'inputs', 'smiling-man.jpeg'),
    grain: 6,
  },
};

/** Names of the pictures there are: photographs where ../shared/data is, else one that is drawn. */
export const pictureNames = () => (existsSync(DATA) ? Object.keys(PHOTOS) : ['drawn']);

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

/** A JPEG of about `megapixels`, 4:3. */
export async function photo(megapixels, name = pictureNames()[0]) {
  const width = Math.round(Math.sqrt((megapixels * 1e6 * 4) / 3));
  const height = Math.floor((megapixels * 1e6) / width);
  const { file, grain } = PHOTOS[name] ?? { grain: 6 };
  const pixels = file
    ? await sharp(await readFile(file))
        .resize(width, height, { fit: 'cover' })
        .removeAlpha()
        .raw()
        .toBuffer()
    : await drawn(width, height);
  if (grain > 0) {
    const values = noise(width * height);
    for (let i = 0; i < pixels.length; i++) {
      pixels[i] = Math.max(0, Math.min(255, Math.round(pixels[i] + grain * values[Math.trunc(i / 3)])));
    }
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 90 })
    .toBuffer();
}
