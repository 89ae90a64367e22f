// Backgrounds for subjects, so that neither an alpha channel nor a white background reveals the type.
import sharp from 'sharp';
import { cropped, load, over, rgba } from './images.js';

/** The maximum side of a composite. */
const LARGEST_SIDE = 512;
const ASPECTS = [1, 4 / 3, 3 / 4, 3 / 2, 2 / 3];

const between = (random, from, to) => from + (to - from) * random();
const oneOf = (random, list) => list[Math.floor(random() * list.length)];
const raw = ({ data, width, height }) => sharp(data, { raw: { width, height, channels: 4 } });

/** A smaller share of an image, or shorter sides in pixels, is not classified. */
const MIN_SHARE = 0.02;
const MIN_SIDE = 16;

/** The subject of an `image` under a `matte` of any size, cropped to its box; undefined if it is too small. */
export async function cutOut({ data, width, height }, matte) {
  const bytes = new Uint8Array(matte.data.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = Math.round(matte.data[at] * 255);
  const alpha = await sharp(bytes, { raw: { width: matte.width, height: matte.height, channels: 1 } })
    .resize(width, height, { fit: 'fill', kernel: 'linear' })
    .extractChannel(0)
    .raw()
    .toBuffer();
  const subject = Uint8Array.from(data);
  let [left, top, right, bottom, sum] = [width, height, -1, -1, 0];
  for (let at = 0; at < alpha.length; at++) {
    subject[at * 4 + 3] = alpha[at];
    sum += alpha[at] / 255;
    if (alpha[at] < 128) continue;
    const [x, y] = [at % width, Math.floor(at / width)];
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
  }
  const [w, h] = [right - left + 1, bottom - top + 1];
  if (sum < MIN_SHARE * width * height || w < MIN_SIDE || h < MIN_SIDE) return undefined;
  const box = { x: left / width, y: top / height, w: w / width, h: h / height };
  return cropped({ data: subject, width, height }, box);
}

/** One colour, or a gradient across the image. */
function plainGround({ width, height }, random) {
  const colour = () => [0, 0, 0].map(() => between(random, 20, 255));
  const from = colour();
  const to = random() < 0.4 ? from : colour();
  const [dx, dy] = [random() / width, random() / height];
  const data = new Uint8Array(width * height * 4).fill(255);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const share = (x * dx + y * dy) / 2;
      const at = (y * width + x) * 4;
      for (let channel = 0; channel < 3; channel++)
        data[at + channel] = from[channel] + share * (to[channel] - from[channel]);
    }
  }
  return { data, width, height };
}

const opened = new Map();

/** A photo laid over white, read once. */
async function groundPhoto(photo) {
  if (!opened.has(photo)) opened.set(photo, over(await load(photo.open()), [255, 255, 255]));
  return opened.get(photo);
}

/** A random part of a photo, sharp or blurred as if out of focus. */
async function photoGround({ width, height }, photos, blurred, random) {
  const photo = await groundPhoto(oneOf(random, photos));
  const share = between(random, 0.5, 1);
  const part = { width: Math.ceil(share * photo.width), height: Math.ceil(share * photo.height) };
  const left = Math.floor(random() * (photo.width - part.width));
  const top = Math.floor(random() * (photo.height - part.height));
  const image = raw(photo).extract({ left, top, ...part });
  const filled = await rgba(image.resize(width, height, { fit: 'cover' }));
  return blurred ? rgba(raw(filled).blur(between(random, 3, 12))) : filled;
}

async function groundOf(kind, size, photos, random) {
  if (kind === 'blurred' || kind === 'sharp') return photoGround(size, photos, kind === 'blurred', random);
  const ground = plainGround(size, random);
  if (kind === 'white') ground.data.fill(255);
  return ground;
}

/**
 * The cut-out `image` at a random position in a larger opaque one: over a `white` or `plain` background, or a `sharp` or
 * `blurred` one of `photos` (packagePhotos). `matte` is its alpha there, values 0..1.
 */
export async function laidOver(kind, image, photos, random) {
  const aspect = oneOf(random, ASPECTS);
  const share = between(random, 0.5, 0.95);
  // The subject takes `share` of the side that it fills first.
  const wanted = Math.max(image.width, image.height * aspect) / share;
  const width = Math.round(Math.min(wanted, LARGEST_SIDE * Math.min(1, aspect)));
  const size = { width, height: Math.round(width / aspect) };
  const scale = share * Math.min(size.width / image.width, size.height / image.height);
  const [w, h] = [image.width, image.height].map((side) => Math.max(1, Math.floor(side * scale)));
  const subject = await rgba(raw(image).resize(w, h, { fit: 'fill' }));
  const ground = await groundOf(kind, size, photos, random);
  const left = Math.floor(between(random, 0.1, 0.9) * (size.width - w));
  const top = Math.floor(between(random, 0.3, 1) * (size.height - h));
  const { data } = ground;
  const matte = new Float32Array(size.width * size.height);
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      const from = (y * w + x) * 4;
      const to = ((top + y) * size.width + left + x) * 4;
      const alpha = subject.data[from + 3] / 255;
      matte[to / 4] = alpha;
      for (let channel = 0; channel < 3; channel++)
        data[to + channel] += alpha * (subject.data[from + channel] - data[to + channel]);
    }
  }
  return { image: ground, matte: { data: matte, ...size } };
}
