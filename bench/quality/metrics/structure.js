const EPSILON = Number.EPSILON;

/** Sums over a rectangle that all of this needs; the matte in 0..1, the truth 0 or 1 (above 128). */
function sums(matte, truth, width, [left, top, right, bottom]) {
  const total = { n: (right - left) * (bottom - top), p: 0, pp: 0, g: 0, pg: 0 };
  for (let y = top; y < bottom; y++) {
    for (let x = left, i = y * width + left; x < right; x++, i++) {
      const p = matte[i] / 255;
      total.p += p;
      total.pp += p * p;
      if (truth[i] > 128) {
        total.g++;
        total.pg += p;
      }
    }
  }
  return total;
}

/** 2m / (m² + 1 + σ) of n values with these sums; σ with n − 1. */
function likeness(n, sum, squares) {
  if (n === 0) return 0;
  const mean = sum / n;
  const deviation = n > 1 ? Math.sqrt(Math.max(0, squares - n * mean * mean) / (n - 1)) : 0;
  return (2 * mean) / (mean * mean + 1 + deviation + EPSILON);
}

function similarity({ n, p, pp, g, pg }) {
  if (n === 0) return 0;
  const [x, y] = [p / n, g / n];
  const over = n > 1 ? n - 1 : 1;
  const varianceX = (pp - n * x * x) / over;
  const varianceY = (g - n * y * y) / over;
  const covariance = (pg - n * x * y) / over;
  const above = 4 * x * y * covariance;
  const below = (x * x + y * y) * (varianceX + varianceY);
  if (Math.abs(above) > 1e-15) return above / (below + EPSILON);
  return Math.abs(below) < 1e-15 ? 1 : 0;
}

/** S-measure (Fan 2017), α = .5: half likeness of object and background, half that of four quadrants at the centroid. */
export function structure(matte, truth, { width, height }) {
  let [count, atX, atY, squaresInside] = [0, 0, 0, 0];
  const all = sums(matte, truth, width, [0, 0, width, height]);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      if (truth[i] <= 128) continue;
      count++;
      atX += x;
      atY += y;
      squaresInside += (matte[i] / 255) ** 2;
    }
  }
  if (count === 0) return 1 - all.p / all.n;
  if (count === all.n) return all.p / all.n;
  const share = count / all.n;
  const outside = all.n - count;
  // The background's likeness is that of 1 − matte.
  const p = all.p - all.pg;
  const squares = outside - 2 * p + (all.pp - squaresInside);
  const object =
    share * likeness(count, all.pg, squaresInside) + (1 - share) * likeness(outside, outside - p, squares);
  const [cx, cy] = [Math.round(atX / count) + 1, Math.round(atY / count) + 1];
  let region = 0;
  for (const box of [
    [0, 0, cx, cy],
    [cx, 0, width, cy],
    [0, cy, cx, height],
    [cx, cy, width, height],
  ]) {
    const part = sums(matte, truth, width, box);
    region += (part.n / all.n) * similarity(part);
  }
  return Math.max(0, 0.5 * object + 0.5 * region);
}
