import sharp from 'sharp';

const SHOWN = 300; // width of an image in a strip
const WINDOW = 96; // side of a zoomed place
const ZOOM = 3;
const GROUNDS = { light: [246, 246, 243], vivid: [30, 96, 200] };

const uri = (type, buffer) => `data:image/${type};base64,${buffer.toString('base64')}`;

async function jpeg(data, { width, height }, channels) {
  const image = sharp(data, { raw: { width, height, channels } }).resize({ width: Math.min(width, SHOWN) });
  return uri('jpeg', await image.jpeg({ quality: 72, mozjpeg: true }).toBuffer());
}

/** The cut-out over one colour. */
export function over(rgb, alpha, ground) {
  const out = new Uint8Array(rgb.length);
  for (let i = 0, at = 0; i < alpha.length; i++) {
    for (let c = 0; c < 3; c++, at++)
      out[at] = (alpha[i] * rgb[at] + (255 - alpha[i]) * ground[c] + 127) / 255;
  }
  return out;
}

/** Too opaque is red, too clear is blue, right is white; a difference of half is the full colour. */
export function errorMap(matte, truth) {
  const out = new Uint8Array(matte.length * 3).fill(255);
  for (let i = 0; i < matte.length; i++) {
    const apart = matte[i] - truth[i];
    if (apart === 0) continue;
    const left = 255 - Math.min(255, Math.abs(apart) * 2);
    if (apart > 0) out[i * 3 + 1] = out[i * 3 + 2] = left;
    else out[i * 3] = out[i * 3 + 1] = left;
  }
  return out;
}

/**
 * The window with the largest squared error of a matte, among places of the band.
 * @returns {{left: number, top: number, side: number}}
 */
export function worstPlace(matte, truth, band, { width, height }) {
  const side = Math.min(WINDOW, width, height);
  const half = Math.max(1, side >> 1);
  const columns = Math.ceil(width / half);
  const rows = Math.ceil(height / half);
  const sums = new Float64Array((columns + 1) * (rows + 1));
  for (let y = 0, i = 0; y < height; y++) {
    const row = Math.floor(y / half) * (columns + 1);
    for (let x = 0; x < width; x++, i++) {
      if (band[i]) sums[row + Math.floor(x / half)] += (matte[i] - truth[i]) ** 2;
    }
  }
  let [best, left, top] = [-1, 0, 0];
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      const at = y * (columns + 1) + x;
      const sum = sums[at] + sums[at + 1] + sums[at + columns + 1] + sums[at + columns + 2];
      if (sum > best) [best, left, top] = [sum, x * half, y * half];
    }
  }
  return { left: Math.min(left, width - side), top: Math.min(top, height - side), side };
}

async function zoom(data, { width, height }, channels, { left, top, side }) {
  const image = sharp(data, { raw: { width, height, channels } })
    .extract({ left, top, width: side, height: side })
    .resize(side * ZOOM, side * ZOOM, { kernel: 'nearest' });
  return uri('png', await image.png({ palette: true, effort: 4 }).toBuffer());
}

/**
 * What a person looks at: the whole image and the worst place, for a method beside a plain one.
 * @param {import('./sources.js').Known} image
 * @param {{name: string, matte: Uint8Array, rgb: Uint8Array}} result
 * @param {{name: string, matte: Uint8Array}} [plain]
 */
export async function stripOf(image, result, plain, band) {
  const { rgb, alpha } = image;
  const place = worstPlace(result.matte, alpha, band, image);
  const onVivid = over(result.rgb, result.matte, GROUNDS.vivid);
  const whole = [
    ['source', rgb, 3],
    ['true alpha', alpha, 1],
    [`alpha: ${result.name}`, result.matte, 1],
    ['on light', over(result.rgb, result.matte, GROUNDS.light), 3],
    ['on blue', onVivid, 3],
    [`error: ${result.name}`, errorMap(result.matte, alpha), 3],
    ...(plain ? [[`error: ${plain.name}`, errorMap(plain.matte, alpha), 3]] : []),
  ];
  const close = [
    ['worst place: source', rgb, 3],
    ['true alpha', alpha, 1],
    [result.name, result.matte, 1],
    ...(plain ? [[plain.name, plain.matte, 1]] : []),
    [`${result.name} on blue`, onVivid, 3],
    ...(image.foreground ? [['truth on blue', over(image.foreground, alpha, GROUNDS.vivid), 3]] : []),
  ];
  return {
    images: await Promise.all(
      whole.map(async ([caption, data, n]) => ({ caption, src: await jpeg(data, image, n) })),
    ),
    zoomed: await Promise.all(
      close.map(async ([caption, data, n]) => ({ caption, src: await zoom(data, image, n, place) })),
    ),
    place,
  };
}
