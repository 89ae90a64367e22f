// Training images and their augmentation: the type must not be recognisable by features of the source.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';
import { packagePhotos } from './packages.js';

const tableOf = (file) => {
  const [, ...rows] = readFileSync(file, 'utf8').trim().split('\n');
  return rows;
};

/** The maximum number of photos of one type from one source. */
const MAX_PER_SOURCE = 60;

/** Photos of DATA/types. A source is a set; in the set of many different kinds, a kind. */
const dataPhotos = (data) =>
  tableOf(path.join(data, 'types', 'manifest.csv')).map((row) => {
    // Quotes stand in the last column only.
    const columns = row.split(',');
    const [name, type, set] = columns;
    const [kind] = columns.slice(13);
    const source = set === 'caltech101' ? `${set} ${kind}` : set;
    return { name, open: () => path.join(data, 'types', name), type, set, source };
  });

/** Photos of DATA/types and of PACKAGES in a fixed pseudorandom order. */
export function trainingPhotos(data, packages) {
  const photos = [...dataPhotos(data), ...packagePhotos(packages)].map((photo) => ({
    ...photo,
    order: seeded(photo.name)(),
  }));
  photos.sort((a, b) => a.order - b.order);
  const taken = new Map();
  return photos.filter(({ type, source }) => {
    const key = `${type} ${source}`;
    taken.set(key, (taken.get(key) ?? 0) + 1);
    return taken.get(key) <= MAX_PER_SOURCE;
  });
}

/** The test photos, labelled by hand; nothing is trained or tuned on them. */
export const heldOutPhotos = (data) =>
  tableOf(new URL('heldout.csv', import.meta.url)).map((row) => {
    const [name, type] = row.split(',');
    return { name, open: () => path.join(data, name), type, set: name.split('/')[0] };
  });

export const featuresFile = (cache, name) => path.join(cache, `${name.replaceAll('/', '__')}.f32`);

/** A pseudorandom generator of numbers in 0..1, seeded by a text. */
export function seeded(text) {
  let state = createHash('sha256').update(text).digest().readUInt32LE(0);
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The maximum side of a loaded image: above that of the detector's input. */
const LARGEST_SIDE = 512;

export const rgba = async (image) => {
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  const { width, height } = info;
  return { data: new Uint8Array(data.buffer, data.byteOffset, data.length), width, height };
};

/** Loads an image from a path or a file's bytes. */
export const load = (source) =>
  rgba(
    sharp(source, { failOn: 'none' })
      .autoOrient()
      .toColourspace('srgb')
      .ensureAlpha()
      .resize(LARGEST_SIDE, LARGEST_SIDE, { fit: 'inside', withoutEnlargement: true }),
  );

/** The image resized to a square. */
export const stretched = ({ data, width, height }, side) =>
  rgba(
    sharp(data, { raw: { width, height, channels: 4 } }).resize(side, side, {
      fit: 'fill',
      kernel: 'linear',
    }),
  );

/** Whether the image has pixels that are mostly transparent. */
export function isCutOut({ data }) {
  for (let at = 3; at < data.length; at += 4) if (data[at] < 128) return true;
  return false;
}

/** `change` returns the new colour of a pixel, and its alpha if that changes too. */
function eachPixel({ data, width, height }, change) {
  const result = Uint8Array.from(data);
  for (let at = 0; at < data.length; at += 4) {
    const pixel = change(data[at], data[at + 1], data[at + 2], data[at + 3]);
    for (let channel = 0; channel < pixel.length; channel++) result[at + channel] = pixel[channel];
  }
  return { data: result, width, height };
}

export const gray = (image) =>
  eachPixel(image, (r, g, b) => {
    const luma = 0.299 * r + 0.587 * g + 0.114 * b;
    return [luma, luma, luma];
  });

/** A change of the light: a gain for each channel. */
export function tinted(image, random) {
  const [red, green, blue] = [0, 0, 0].map(() => 0.75 + 0.5 * random());
  const lit = (value) => Math.min(255, value);
  return eachPixel(image, (r, g, b) => [lit(r * red), lit(g * green), lit(b * blue)]);
}

export function mirrored({ data, width, height }) {
  const result = new data.constructor(data.length);
  const each = data.length / (width * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const from = (y * width + width - 1 - x) * each;
      result.set(data.subarray(from, from + each), (y * width + x) * each);
    }
  }
  return { data: result, width, height };
}

/** A random crop of 65 to 95 % of each side; the same part of a matte of another size. */
export function cropBox(random) {
  const [w, h] = [0.65 + 0.3 * random(), 0.65 + 0.3 * random()];
  return { x: (1 - w) * random(), y: (1 - h) * random(), w, h };
}

export function cropped({ data, width, height }, box) {
  const each = data.length / (width * height);
  const [left, top] = [Math.floor(box.x * width), Math.floor(box.y * height)];
  const [w, h] = [Math.max(1, Math.floor(box.w * width)), Math.max(1, Math.floor(box.h * height))];
  const result = new data.constructor(w * h * each);
  for (let y = 0; y < h; y++) {
    const from = ((top + y) * width + left) * each;
    result.set(data.subarray(from, from + w * each), y * w * each);
  }
  return { data: result, width: w, height: h };
}

/** The image laid over one colour, opaque then. */
export function over(image, [red, green, blue]) {
  return eachPixel(image, (r, g, b, a) => {
    const k = a / 255;
    return [r * k + red * (1 - k), g * k + green * (1 - k), b * k + blue * (1 - k), 255];
  });
}
