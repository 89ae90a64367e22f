import { readdir } from 'node:fs/promises';
import path from 'node:path';
import sharp from 'sharp';
import { blend } from './index.js';
import { dice, seedOf } from './random.js';

const IMAGE = /\.(png|jpe?g|webp|tiff?)$/i;

/** Image files in a folder and the folders in it, sorted. */
export async function imagesIn(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && IMAGE.test(entry.name))
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

/**
 * Cut-outs (RGBA files whose alpha is their truth) among the images of a folder: those with at least 2 % of their
 * pixels opaque and 2 % clear.
 */
export async function cutoutsIn(folder) {
  const found = [];
  for (const file of await imagesIn(folder)) {
    const image = sharp(file);
    const { hasAlpha } = await image.metadata();
    if (!hasAlpha) continue;
    const { data } = await image
      .ensureAlpha()
      .extractChannel(3)
      .resize(64, 64, { fit: 'fill' })
      .raw()
      .toBuffer({ resolveWithObject: true });
    const share = (wanted) => data.filter(wanted).length / data.length;
    if (share((a) => a > 250) > 0.02 && share((a) => a < 5) > 0.02) found.push(file);
  }
  return found;
}

/**
 * A cut-out laid over a photo: scaled (in premultiplied colours) into 55 to 90 % of the frame and placed by the seed.
 * Its alpha and colours after scaling are the truth.
 * @param {{cutout: string, photo: string, width: number, height: number, seed: number}} what
 * @returns {Promise<import('./index.js').Image>}
 */
export async function composeImage({ cutout, photo, width, height, seed }) {
  const d = dice(seedOf(path.basename(cutout), seed));
  const share = d.between(0.55, 0.9);
  const image = sharp(await sharp(cutout).ensureAlpha().toColourspace('srgb').toBuffer());
  const front = await image
    .resize(Math.round(width * share), Math.round(height * share), { fit: 'inside' })
    .raw()
    .toBuffer({ resolveWithObject: true });
  const { width: w, height: h } = front.info;
  const [left, top] = [Math.round(d.next() * (width - w)), Math.round((0.5 + 0.5 * d.next()) * (height - h))];
  const background = await sharp(photo)
    .rotate()
    .resize(width, height, { fit: 'cover' })
    .flatten()
    .toColourspace('srgb')
    .raw()
    .toBuffer();
  const pixels = width * height;
  const alpha = new Uint8Array(pixels);
  const foreground = new Uint8Array(pixels * 3);
  const composite = new Uint8Array(background);
  for (let y = 0, from = 0; y < h; y++) {
    for (let x = 0, to = (y + top) * width + left; x < w; x++, to++, from += 4) {
      const a = front.data[from + 3];
      if (a === 0) continue;
      alpha[to] = a;
      for (let c = 0; c < 3; c++) {
        const f = front.data[from + c];
        foreground[to * 3 + c] = f;
        composite[to * 3 + c] = blend(a, f, background[to * 3 + c]);
      }
    }
  }
  const name = `${path.basename(cutout, path.extname(cutout))}-${seed}`;
  return {
    name,
    kind: 'cutout',
    width,
    height,
    composite,
    alpha,
    foreground,
    background: new Uint8Array(background),
  };
}
