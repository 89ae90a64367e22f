// Pictures for training, and what is done to them: the kind of subject must not be told by the source's habits.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';

/** Photos of one type from one set beyond these are left out: a hundred more of the same say little. */
const MOST_OF_A_SET = 120;

/** Photos in all: their features take a few minutes, and more of the same sets add little. */
const MOST = 800;

/** At most MOST_OF_A_SET photos of each type and set, in an order that mixes them and is always the same. */
export function trainingPhotos(folder) {
  const [, ...rows] = readFileSync(path.join(folder, 'manifest.csv'), 'utf8').trim().split('\n');
  const photos = rows.map((row) => {
    // Quotes stand in the last column only.
    const columns = row.split(',');
    const [name, type, set] = columns;
    const [kind] = columns.slice(13);
    return { name, file: path.join(folder, name), type, set, kind, order: seeded(name)() };
  });
  photos.sort((a, b) => a.order - b.order);
  const taken = new Map();
  const kept = photos.filter(({ type, set }) => {
    const key = `${type} ${set}`;
    taken.set(key, (taken.get(key) ?? 0) + 1);
    return taken.get(key) <= MOST_OF_A_SET;
  });
  return kept.slice(0, MOST);
}

/** Numbers in 0..1 that are the same in every run for the same text. */
export function seeded(text) {
  let state = createHash('sha256').update(text).digest().readUInt32LE(0);
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Largest side a picture is worked on with: the detector reads 512. */
const LARGEST_SIDE = 512;

export async function load(file) {
  const { data, info } = await sharp(file, { failOn: 'none' })
    .autoOrient()
    .toColourspace('srgb')
    .ensureAlpha()
    .resize(LARGEST_SIDE, LARGEST_SIDE, { fit: 'inside', withoutEnlargement: true })
    .raw()
    .toBuffer({ resolveWithObject: true });
  return {
    data: new Uint8Array(data.buffer, data.byteOffset, data.length),
    width: info.width,
    height: info.height,
  };
}

/** The picture's own alpha as a matte; undefined where it has none to speak of. */
export function ownMatte({ data, width, height }) {
  const alpha = Float32Array.from({ length: width * height }, (_, at) => data[at * 4 + 3] / 255);
  return alpha.some((value) => value < 0.5) ? { data: alpha, width, height } : undefined;
}

/** A matte the network made, kept as <folder>/<name>.u16: a square of 16-bit values. Undefined without one. */
export function networkMatte(folder, name) {
  const file = folder && path.join(folder, `${name.replaceAll('/', '__')}.u16`);
  if (!file || !existsSync(file)) return undefined;
  const bytes = readFileSync(file);
  const side = Math.sqrt(bytes.length / 2);
  const data = Float32Array.from({ length: side * side }, (_, at) => bytes.readUInt16LE(at * 2) / 65535);
  return { data, width: side, height: side };
}

const SIDE = 64;

/** A matte nobody made: everywhere, or a soft ellipse about the middle. The head must do with any. */
export function roughMatte(kind, random) {
  const [cx, cy] = [0.4 + 0.2 * random(), 0.45 + 0.15 * random()];
  const [rx, ry] = [0.3 + 0.25 * random(), 0.3 + 0.25 * random()];
  const data = Float32Array.from({ length: SIDE * SIDE }, (_, at) => {
    if (kind === 'everywhere') return 1;
    const x = ((at % SIDE) + 0.5) / SIDE;
    const y = (Math.floor(at / SIDE) + 0.5) / SIDE;
    return Math.min(1, Math.max(0, (1.1 - Math.hypot((x - cx) / rx, (y - cy) / ry)) * 5));
  });
  return { data, width: SIDE, height: SIDE };
}

function eachPixel({ data, width, height }, change) {
  const result = new Uint8Array(data.length);
  for (let at = 0; at < data.length; at += 4) result.set(change(data.subarray(at, at + 4)), at);
  return { data: result, width, height };
}

export const gray = (picture) =>
  eachPixel(picture, ([r, g, b, a]) => {
    const luma = 0.299 * r + 0.587 * g + 0.114 * b;
    return [luma, luma, luma, a];
  });

/** Another light: a gain for each channel. */
export function tinted(picture, random) {
  const gains = [0, 0, 0].map(() => 0.75 + 0.5 * random());
  return eachPixel(picture, (pixel) =>
    [0, 1, 2, 3].map((c) => (c < 3 ? Math.min(255, pixel[c] * gains[c]) : pixel[c])),
  );
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

/** A part of 65 to 95 % of either side; the same share of a matte of another size. */
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

/** A cut-out laid over one colour, opaque then. */
export function over(picture, colour) {
  return eachPixel(picture, ([r, g, b, a]) => {
    const [br, bg, bb] = colour;
    const k = a / 255;
    return [r * k + br * (1 - k), g * k + bg * (1 - k), b * k + bb * (1 - k), 255];
  });
}
