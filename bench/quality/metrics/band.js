/**
 * Masks are one byte a pixel, 0 or 1. Mattes are one byte a pixel, 0..255.
 * @typedef {{width: number, height: number}} Size
 */

/** Every pixel within `radius` (a square of 2 radius + 1) of a set one. */
export function dilate(mask, { width, height }, radius) {
  const rows = new Uint8Array(mask.length);
  for (let y = 0; y < height; y++) {
    const from = y * width;
    let until = -1;
    // Ahead of x by the radius: what is set there reaches back to x.
    for (let x = -radius; x < width; x++) {
      if (x + radius < width && mask[from + x + radius]) until = x + 2 * radius;
      if (x >= 0 && x <= until) rows[from + x] = 1;
    }
  }
  const out = new Uint8Array(mask.length);
  const until = new Int32Array(width).fill(-1);
  for (let y = -radius; y < height; y++) {
    const ahead = y + radius;
    for (let x = 0; x < width; x++) {
      if (ahead < height && rows[ahead * width + x]) until[x] = y + 2 * radius;
      if (y >= 0 && y <= until[x]) out[y * width + x] = 1;
    }
  }
  return out;
}

/** Pixels whose truth is neither 0 nor 1, and what lies within 0.4 % of the diagonal (at least 2 pixels) of them. */
export function uncertainBand(truth, size) {
  const mask = new Uint8Array(truth.length);
  const { width, height } = size;
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      const a = truth[i];
      // A hard edge has no soft pixel: a step between neighbours counts too.
      const step =
        (x > 0 && Math.abs(a - truth[i - 1]) > 127) || (y > 0 && Math.abs(a - truth[i - width]) > 127);
      if ((a > 0 && a < 255) || step) mask[i] = 1;
    }
  }
  const radius = Math.max(2, Math.round(0.004 * Math.hypot(width, height)));
  return dilate(mask, size, radius);
}
