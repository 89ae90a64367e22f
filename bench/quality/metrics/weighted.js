import { nearestRows } from './distance.js';

const HALF = 3;
const SIGMA = 5;
const DECAY = Math.log(0.5) / 5;

/** One dimension of the 7 × 7 Gaussian, of sum 1. */
const GAUSS = (() => {
  const raw = Array.from({ length: 2 * HALF + 1 }, (_, i) =>
    Math.exp(-((i - HALF) ** 2) / (2 * SIGMA * SIGMA)),
  );
  const sum = raw.reduce((a, b) => a + b, 0);
  return raw.map((value) => value / sum);
})();

/** 7 × 7 Gaussian of a row-major plane with zeros around it, along one direction at a time. */
function blur(plane, { width, height }) {
  const across = new Float32Array(plane.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0, i = y * width; x < width; x++, i++) {
      let sum = 0;
      for (let k = Math.max(-HALF, -x); k <= Math.min(HALF, width - 1 - x); k++)
        sum += GAUSS[k + HALF] * plane[i + k];
      across[i] = sum;
    }
  }
  return (x, y) => {
    let sum = 0;
    for (let k = Math.max(-HALF, -y); k <= Math.min(HALF, height - 1 - y); k++) {
      sum += GAUSS[k + HALF] * across[(y + k) * width + x];
    }
    return sum;
  };
}

/**
 * Weighted F (Margolin 2014), β² = 1, truth is the region above 128. Errors of the background are taken from the
 * nearest foreground pixel before they are smoothed, and weigh 2 − exp(ln(.5)/5 · d) at distance d.
 */
export function weightedF(matte, truth, size) {
  const { width, height } = size;
  const pixels = matte.length;
  const region = new Uint8Array(pixels);
  let there = 0;
  for (let i = 0; i < pixels; i++) {
    region[i] = truth[i] > 128 ? 1 : 0;
    there += region[i];
  }
  if (there === 0) return 0;
  const error = (i) => Math.abs(matte[i] / 255 - region[i]);
  const nearby = new Float32Array(pixels);
  let falsely = 0;
  nearestRows(region, size, (y, squared, nearest) => {
    for (let x = 0, i = y * width; x < width; x++, i++) {
      nearby[i] = error(nearest[x]);
      if (!region[i] && matte[i] > 0) falsely += error(i) * (2 - Math.exp(DECAY * Math.sqrt(squared[x])));
    }
  });
  const smoothed = blur(nearby, size);
  let missed = 0;
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      if (region[i] && matte[i] < 255) missed += Math.min(error(i), smoothed(x, y));
    }
  }
  const hit = there - missed;
  const recall = 1 - missed / there;
  const precision = hit / (hit + falsely + Number.EPSILON);
  return (2 * recall * precision) / (recall + precision + Number.EPSILON);
}
