import sharp from 'sharp';
import { png } from './generate/write.js';
import { split } from './kernels.js';

/** Largest upload of the interface, in bytes. */
const LARGEST_UPLOAD = 22 * 2 ** 20;

/**
 * A PNG, so that what is measured is the product and not a JPEG's noise; what is too large for the interface as a PNG
 * (12 MP of strands over grain) goes as a JPEG of quality 100 without chroma subsampling, at most two levels off.
 */
async function uploadOf(rgb, size) {
  const lossless = await png(rgb, size, 3);
  if (lossless.length <= LARGEST_UPLOAD) return lossless;
  return await sharp(rgb, { raw: { ...size, channels: 3 } })
    .jpeg({ quality: 100, chromaSubsampling: '4:4:4' })
    .toBuffer();
}

/**
 * A cut-out over HTTP, at the size of the upload.
 * @param {import('../lib/client.ts').Client} client
 */
export async function requestCutout(client, { rgb, width, height }, fields = {}) {
  const answer = await client.cutout(await uploadOf(rgb, { width, height }), {
    size: '50MP',
    format: 'png',
    ...fields,
  });
  if (answer.status === 400 && answer.code === 'unknown_foreground') {
    return { matte: new Uint8Array(width * height), rgb, nothing: true, ms: answer.ms };
  }
  if (answer.status !== 200) throw new Error(`the server answered ${answer.status} ${answer.code}`);
  const { data, info } = await sharp(answer.body).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  if (info.width !== width || info.height !== height) {
    throw new Error(`the result has ${info.width}×${info.height} pixels instead of ${width}×${height}`);
  }
  return { ...split(data), nothing: false, ms: answer.ms };
}

/** The part of an image whose sides are multiples of a number. */
export function cropped(image, multiple) {
  const { width, height } = image;
  const [w, h] = [width - (width % multiple), height - (height % multiple)];
  if (w === width && h === height) return image;
  if (w === 0 || h === 0) throw new RangeError(`${image.name} is too small to be reduced ${multiple} times`);
  const cut = (data, channels) => {
    if (!data) return undefined;
    const out = new Uint8Array(w * h * channels);
    for (let y = 0; y < h; y++) {
      out.set(data.subarray(y * width * channels, (y * width + w) * channels), y * w * channels);
    }
    return out;
  };
  return {
    ...image,
    width: w,
    height: h,
    rgb: cut(image.rgb, 3),
    alpha: cut(image.alpha, 1),
    foreground: cut(image.foreground, 3),
    band: cut(image.band, 1),
  };
}
