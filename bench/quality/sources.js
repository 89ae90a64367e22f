import { existsSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';
import { imagesIn } from './generate/cutouts.js';
import { generated } from './generate/images.js';
import { KINDS } from './generate/index.js';

/**
 * An image with its truth. `foreground`: true colours, where known; `band`: where edges count, where a trimap says it.
 * @typedef {{name: string, kind: string, width: number, height: number, rgb: Uint8Array, alpha: Uint8Array,
 *   foreground?: Uint8Array, band?: Uint8Array}} Known
 */

export async function readRgb(file) {
  const { data, info } = await sharp(file)
    .rotate()
    .toColourspace('srgb')
    .flatten()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const rgb = new Uint8Array(data.buffer, data.byteOffset, data.length);
  if (info.channels === 3) return { rgb, width: info.width, height: info.height };
  const wide = new Uint8Array(info.width * info.height * 3);
  for (let i = 0; i < wide.length; i++) wide[i] = rgb[Math.trunc(i / 3) * info.channels];
  return { rgb: wide, width: info.width, height: info.height };
}

/** One byte a pixel: the alpha of a file that has one with something clear in it, else its gray. */
export async function readMatte(file) {
  const image = sharp(file);
  const { hasAlpha } = await image.metadata();
  const opaque = hasAlpha ? (await image.stats()).isOpaque : true;
  const plane =
    hasAlpha && !opaque
      ? image.extractChannel(3)
      : image.removeAlpha().toColourspace('b-w').extractChannel(0);
  const { data, info } = await plane.raw().toBuffer({ resolveWithObject: true });
  return { matte: new Uint8Array(data), width: info.width, height: info.height };
}

const stem = (file) => path.parse(file).name;

/** Files of a folder by their name without extension. */
const byStem = async (folder) => new Map((await imagesIn(folder)).map((file) => [stem(file), file]));

function sameSize(what, one, other) {
  if (one.width !== other.width || one.height !== other.height) {
    throw new RangeError(
      `${what}: ${other.width}×${other.height} for an image of ${one.width}×${one.height}`,
    );
  }
}

async function* fromFolders({ images, alphas, foregrounds, trimaps, count }) {
  const truths = await byStem(alphas);
  const files = (await imagesIn(images)).filter((file) => truths.has(stem(file)));
  if (files.length === 0)
    throw new RangeError(`no image of ${images} has an alpha of the same name in ${alphas}`);
  const [colours, maps] = await Promise.all(
    [foregrounds, trimaps].map((folder) => (folder ? byStem(folder) : new Map())),
  );
  for (const file of files.slice(0, count ?? files.length)) {
    const name = stem(file);
    const image = await readRgb(file);
    const truth = await readMatte(truths.get(name));
    sameSize(`alpha of ${name}`, image, truth);
    const known = { name, kind: name.replace(/[-_ ]*\d+$/, '') || 'image', ...image, alpha: truth.matte };
    if (colours.has(name)) {
      const front = await readRgb(colours.get(name));
      sameSize(`foreground of ${name}`, image, front);
      known.foreground = front.rgb;
    }
    if (maps.has(name)) {
      const { matte, ...size } = await readMatte(maps.get(name));
      sameSize(`trimap of ${name}`, image, size);
      known.band = matte.map((value) => (value > 0 && value < 255 ? 1 : 0));
    }
    yield known;
  }
}

async function* fromGenerator({ mp, ...rest }) {
  for (const megapixels of mp) {
    for await (const { composite, name, ...image } of generated({ ...rest, megapixels })) {
      yield {
        ...image,
        name: mp.length > 1 ? `${name}@${megapixels}mp` : name,
        megapixels,
        rgb: composite,
      };
    }
  }
}

/**
 * Images one at a time, from folders (`images`, `alphas`, …) or made here.
 * @returns {{label: string, exact: boolean, images: AsyncGenerator<Known>}} `exact`: truth known before the image was
 */
export function openKnown(options) {
  const { images, alphas, foregrounds, trimaps, cutouts, photos } = options;
  for (const folder of [images, alphas, foregrounds, trimaps, cutouts, photos]) {
    if (folder && !existsSync(folder)) throw new RangeError(`${folder} does not exist`);
  }
  if (images || alphas) {
    if (!images || !alphas) throw new RangeError('--images and --alphas belong together');
    return { label: images, exact: false, images: fromFolders(options) };
  }
  const unknown = (options.kinds ?? []).find((kind) => !KINDS.includes(kind));
  if (unknown) throw new RangeError(`no kind ${unknown}: ${KINDS.join(', ')}`);
  const label = cutouts ? `cut-outs of ${path.basename(cutouts)} over photos` : 'generated images';
  return { label, exact: true, images: fromGenerator(options) };
}

/** The images of a source until a time box closes: no new one begins after so many seconds. */
export async function* within(seconds, images, { progress }) {
  const begin = performance.now();
  let count = 0;
  for await (const image of images) {
    yield image;
    count++;
    if (performance.now() - begin > seconds * 1000) {
      progress(`time is up after ${count} images`);
      return;
    }
  }
}
