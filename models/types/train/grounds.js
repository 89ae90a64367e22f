// What a subject is laid over, so that neither its alpha nor a white ground tells what it is.
import sharp from 'sharp';
import { load, over, rgba } from './pictures.js';

/** Sides of what is made, at most. */
const LARGEST_SIDE = 512;
const ASPECTS = [1, 4 / 3, 3 / 4, 3 / 2, 2 / 3];

const between = (random, from, to) => from + (to - from) * random();
const oneOf = (random, list) => list[Math.floor(random() * list.length)];
const raw = ({ data, width, height }) => sharp(data, { raw: { width, height, channels: 4 } });

/** One colour, or from one to another across the picture. */
function plainGround({ width, height }, random) {
  const colour = () => [0, 0, 0].map(() => between(random, 20, 255));
  const from = colour();
  const to = random() < 0.4 ? from : colour();
  const [dx, dy] = [random() / width, random() / height];
  const data = new Uint8Array(width * height * 4);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const share = (x * dx + y * dy) / 2;
      const pixel = from.map((value, channel) => value + share * (to[channel] - value));
      data.set([...pixel, 255], (y * width + x) * 4);
    }
  }
  return { data, width, height };
}

/** Some part of a photo, sharp or as if it lay far behind. */
async function photoGround({ width, height }, photos, blurred, random) {
  const photo = over(await load(oneOf(random, photos).open()), [255, 255, 255]);
  const share = between(random, 0.5, 1);
  const part = { width: Math.ceil(share * photo.width), height: Math.ceil(share * photo.height) };
  const left = Math.floor(random() * (photo.width - part.width));
  const top = Math.floor(random() * (photo.height - part.height));
  const image = raw(photo).extract({ left, top, ...part });
  const filled = await rgba(image.resize(width, height, { fit: 'cover' }));
  return blurred ? rgba(raw(filled).blur(between(random, 3, 12))) : filled;
}

/**
 * The cut-out `picture` somewhere in a larger one: over a `plain` ground, or a `sharp` or `blurred` one of `photos`
 * (packagePhotos). Opaque.
 */
export async function laidOver(kind, picture, photos, random) {
  const aspect = oneOf(random, ASPECTS);
  const share = between(random, 0.5, 0.95);
  // The subject takes `share` of the side that it fills first.
  const wanted = Math.max(picture.width, picture.height * aspect) / share;
  const width = Math.round(Math.min(wanted, LARGEST_SIDE * Math.min(1, aspect)));
  const size = { width, height: Math.round(width / aspect) };
  const scale = share * Math.min(size.width / picture.width, size.height / picture.height);
  const [w, h] = [picture.width, picture.height].map((side) => Math.max(1, Math.floor(side * scale)));
  const subject = await rgba(raw(picture).resize(w, h, { fit: 'fill' }));
  const ground =
    kind === 'plain'
      ? plainGround(size, random)
      : await photoGround(size, photos, kind === 'blurred', random);
  const left = Math.floor(between(random, 0.1, 0.9) * (size.width - w));
  const top = Math.floor(between(random, 0.3, 1) * (size.height - h));
  const { data } = ground;
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      const from = (y * w + x) * 4;
      const to = ((top + y) * size.width + left + x) * 4;
      const alpha = subject.data[from + 3] / 255;
      for (let channel = 0; channel < 3; channel++)
        data[to + channel] += alpha * (subject.data[from + channel] - data[to + channel]);
    }
  }
  return ground;
}
