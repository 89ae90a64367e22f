import { createHash } from 'node:crypto';
import { Band } from './canvas.js';
import { palette } from './palette.js';
import { dice, seedOf } from './random.js';
import { SUBJECTS } from './subjects.js';
import { GROUNDS, texture } from './textures.js';

/**
 * An image whose truth is known: the subject's alpha and colours are drawn first, rounded to 8 bits, and only then
 * laid over the background: composite = round((alpha · foreground + (255 − alpha) · background) / 255), exactly.
 * @typedef {object} Image
 * @property {string} name kind and number
 * @property {string} kind
 * @property {number} width
 * @property {number} height
 * @property {Uint8Array} composite RGB
 * @property {Uint8Array} alpha one byte a pixel
 * @property {Uint8Array} foreground RGB; 0 where alpha is 0
 * @property {Uint8Array} background RGB
 */

/** `like` is fur whose background has its colours; all others are subjects of their own. */
export const KINDS = [...Object.keys(SUBJECTS), 'like'];

const ROWS = 256;

/** The whole number round(value · 255) of a value of 0 or more. */
const byte = (value) => (value >= 1 ? 255 : Math.trunc(value * 255 + 0.5));

/** Composite of one sample. */
export const blend = (alpha, front, behind) =>
  Math.trunc((alpha * front + (255 - alpha) * behind + 127) / 255);

/** Width and height, 4:3, of about that many megapixels. */
export function sizeOf(megapixels) {
  const width = Math.max(2, Math.round(Math.sqrt((megapixels * 1e6 * 4) / 3)));
  return { width, height: Math.max(2, Math.round((megapixels * 1e6) / width)) };
}

/**
 * Draws one image. Deterministic in its arguments.
 * @param {{kind: string, width: number, height: number, seed?: number, ground?: string,
 *   behind?: import('./textures.js').Texture}} what
 *   `ground`: one of GROUNDS, else the seed picks; `behind`: a surface to use as background instead
 * @returns {Image}
 */
export function drawImage({ kind, width, height, seed = 1, ground, behind }) {
  if (!KINDS.includes(kind)) throw new RangeError(`no kind ${kind}: ${KINDS.join(', ')}`);
  const d = dice(seedOf(kind, seed));
  const colours = palette(d.seed(), kind === 'like');
  const name = ground ?? d.pick(GROUNDS);
  const order = { width, height, seed: d.seed(), colours: colours.subject, accent: colours.accent };
  const draw = (SUBJECTS[kind] ?? SUBJECTS.fur)(order);
  const back = behind ?? texture(name, { width, height, seed: d.seed(), colours: colours.ground });
  const pixels = width * height;
  const image = {
    name: `${kind}-${seed}`,
    kind,
    width,
    height,
    composite: new Uint8Array(pixels * 3),
    alpha: new Uint8Array(pixels),
    foreground: new Uint8Array(pixels * 3),
    background: new Uint8Array(pixels * 3),
  };
  const band = new Band(width, 0, Math.min(ROWS, height));
  const line = new Float32Array(width * 3);
  for (let top = 0; top < height; top += ROWS) {
    band.moveTo(top, Math.min(ROWS, height - top));
    draw(band);
    for (let y = top; y < top + band.rows; y++) {
      back.row(y, 0, width, line);
      readRow(image, band.data, y, (y - top) * width * 4, line);
    }
  }
  return image;
}

/** Rounds one row of truth and composes it. */
function readRow({ width, alpha, foreground, background, composite }, layer, y, from, line) {
  for (let x = 0, at = from, pixel = y * width, i = 0; x < width; x++, at += 4, pixel++, i += 3) {
    const out = pixel * 3;
    for (let c = 0; c < 3; c++) background[out + c] = byte(Math.max(line[i + c], 0));
    const opacity = layer[at + 3];
    const a = byte(opacity);
    if (a === 0) {
      for (let c = 0; c < 3; c++) composite[out + c] = background[out + c];
      continue;
    }
    alpha[pixel] = a;
    for (let c = 0; c < 3; c++) {
      const f = byte(layer[at + c] / opacity);
      foreground[out + c] = f;
      composite[out + c] = blend(a, f, background[out + c]);
    }
  }
}

/**
 * What a set of `count` images holds: kinds in turn, seeds counting up.
 * @returns {{kind: string, seed: number}[]}
 */
export function imageList(count, { kinds = KINDS, seed = 1 } = {}) {
  return Array.from({ length: count }, (_, i) => ({
    kind: kinds[i % kinds.length],
    seed: seed + Math.floor(i / kinds.length),
  }));
}

/** One hash of everything that is known of an image. */
export function hashOf({ composite, alpha, foreground }) {
  const hash = createHash('sha256');
  for (const part of [composite, alpha, foreground]) hash.update(part);
  return hash.digest('hex');
}
