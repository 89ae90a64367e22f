import test from 'ava';
import { type Guide, loadKernels } from './kernelsAddon.ts';
import { random } from './kernelsImages.ts';

// The energy of native/matte/matting_energy.h by its definition (docs/matting.md, section 4), as a dense matrix in
// double precision, and its exact minimum.

const kernels = loadKernels();

const SMOOTHNESS = 5;
const EPSILON = 1e-7;
const [WIDE, FINE] = [0.0844, 0.1758];

type Matrix = Float64Array[];
const matrix = (n: number, m = n): Matrix => Array.from({ length: n }, () => new Float64Array(m));
const get = (a: Matrix, i: number, j: number): number => a[i]?.[j] ?? 0;
const add = (a: Matrix, i: number, j: number, value: number): void => {
  const row = a[i];
  if (row) row[j] = (row[j] ?? 0) + value;
};

/** Solves a x = b by Gaussian elimination; both are lost. */
function solve(a: Matrix, b: Float64Array): Float64Array {
  const n = b.length;
  for (let k = 0; k < n; k++) {
    for (let i = k + 1; i < n; i++) {
      const share = get(a, i, k) / get(a, k, k);
      if (share === 0) continue;
      for (let j = k; j < n; j++) add(a, i, j, -share * get(a, k, j));
      b[i] = (b[i] ?? 0) - share * (b[k] ?? 0);
    }
  }
  const x = new Float64Array(n);
  for (let i = n - 1; i >= 0; i--) {
    let sum = b[i] ?? 0;
    for (let j = i + 1; j < n; j++) sum -= get(a, i, j) * (x[j] ?? 0);
    x[i] = sum / get(a, i, i);
  }
  return x;
}

const clamp = (value: number, most: number) => Math.min(most, Math.max(0, value));

/** Alpha of the minimum, or start where it is known. */
function minimum(guide: Guide, p: Float32Array, start: Float64Array, unknown: Float32Array, sigma: number) {
  const { width: w, height: h, planes, sampleConfidence, sampledAlpha } = guide;
  const at = (x: number, y: number) => clamp(y, h - 1) * w + clamp(x, w - 1);
  const taps = Array.from({ length: 9 }, (_, k) => Math.exp(-0.5 * ((k - 4) / sigma) ** 2));
  const total = taps.reduce((a, b) => a + b);
  /** The blur of any function of the plane. */
  const blurred = (value: (x: number, y: number) => number, x: number, y: number) => {
    let sum = 0;
    for (let j = -4; j <= 4; j++)
      for (let i = -4; i <= 4; i++)
        sum += (((taps[i + 4] ?? 0) * (taps[j + 4] ?? 0)) / total ** 2) * value(x + i, y + j);
    return sum;
  };
  const first = (x: number, y: number) => start[at(x, y)] ?? 0;
  const cached = (value: (x: number, y: number) => number) => {
    const known = new Map<number, number>();
    return (x: number, y: number) => {
      const key = (y + 100) * 1000 + x + 100;
      const found = known.get(key) ?? value(x, y);
      known.set(key, found);
      return found;
    };
  };
  const change = cached((x, y) => first(x, y) - blurred(first, x, y));
  const again = cached((x, y) => change(x, y) - blurred(change, x, y));
  const fineness = cached((x, y) => {
    let [once, twice] = [0, 0];
    for (let j = -3; j <= 3; j++)
      for (let i = -3; i <= 3; i++) {
        once += change(x + i, y + j) ** 2;
        twice += again(x + i, y + j) ** 2;
      }
    return clamp((twice / 49 / (once / 49 + 1e-9) - WIDE) / (FINE - WIDE), 1);
  });
  const snapped = (value: number) => (value >= 0.02 ? (value <= 0.98 ? value : 1) : 0);

  // Terms weight (sum of coefficients . alpha - value)^2, over all network pixels and those beyond the image.
  const order = [...unknown.keys()].filter((i) => unknown[i] !== 0);
  const row = new Map(order.map((i, k) => [i, k]));
  const a = matrix(order.length);
  const b = new Float64Array(order.length);
  const term = (
    weight: number,
    parts: readonly (readonly [x: number, y: number, share: number])[],
    value: number,
  ) => {
    let rest = value;
    const own = new Map<number, number>();
    for (const [x, y, share] of parts) {
      const inside = x >= 0 && y >= 0 && x < w && y < h;
      const k = inside ? row.get(y * w + x) : undefined;
      if (k === undefined) rest -= share * first(x, y);
      else own.set(k, (own.get(k) ?? 0) + share);
    }
    for (const [i, u] of own) {
      b[i] = (b[i] ?? 0) + weight * u * rest;
      for (const [j, v] of own) add(a, i, j, weight * u * v);
    }
  };
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      const index = y * w + x;
      const c = sampleConfidence?.[index] ?? 0;
      const spread: [number, number, number][] = [];
      for (let j = -4; j <= 4; j++)
        for (let i = -4; i <= 4; i++)
          spread.push([x + i, y + j, ((taps[i + 4] ?? 0) * (taps[j + 4] ?? 0)) / total ** 2]);
      term(1 - c, spread, snapped(p[index] ?? 0));
      term(c, [[x, y, 1]], sampledAlpha?.[index] ?? 0);
      term(1 - fineness(x, y), [[x, y, 1]], first(x, y));
      // The window's residual: (1 - X (X'X + 49 epsilon)^-1 X') alpha, X the columns 1, r, g, b.
      const near = Array.from(
        { length: 49 },
        (_, k) => [x + (k % 7) - 3, y + Math.floor(k / 7) - 3] as const,
      );
      const columns = near.map(([u, v]) => [
        1,
        ...[0, 1, 2].map((k) => (planes[k * w * h + at(u, v)] ?? 0) * guide.scale + guide.offset),
      ]);
      const normal = matrix(4);
      for (const column of columns)
        for (let i = 0; i < 4; i++)
          for (let j = 0; j < 4; j++) add(normal, i, j, (column[i] ?? 0) * (column[j] ?? 0));
      for (let i = 1; i < 4; i++) add(normal, i, i, 49 * EPSILON);
      const inverse = [0, 1, 2, 3].map((i) =>
        solve(
          normal.map((line) => line.slice()),
          Float64Array.from({ length: 4 }, (_, k) => (k === i ? 1 : 0)),
        ),
      );
      const weight = (SMOOTHNESS / 49) * fineness(x, y);
      // alpha' (1 - P) alpha, entry by entry.
      for (const [i, [u, v]] of near.entries()) {
        const inside = u >= 0 && v >= 0 && u < w && v < h;
        const k = inside ? row.get(v * w + u) : undefined;
        if (k === undefined) continue;
        for (const [j, [s, t]] of near.entries()) {
          let share = i === j ? 1 : 0;
          for (let m = 0; m < 4; m++)
            for (let n = 0; n < 4; n++)
              share -= (columns[i]?.[m] ?? 0) * (inverse[m]?.[n] ?? 0) * (columns[j]?.[n] ?? 0);
          const other = s >= 0 && t >= 0 && s < w && t < h ? row.get(t * w + s) : undefined;
          if (other === undefined) b[k] = (b[k] ?? 0) - weight * share * first(s, t);
          else add(a, k, other, weight * share);
        }
      }
    }
  }
  const found = solve(a, b);
  const alpha = Float64Array.from(start);
  for (const [k, index] of order.entries()) alpha[index] = clamp(found[k] ?? 0, 1);
  return alpha;
}

for (const sampled of [false, true]) {
  test(`deblurring ends near the minimum of its energy, ${sampled ? 'with' : 'without'} samples`, (t) => {
    for (const seed of [1, 2, 3]) {
      const next = random(seed);
      const [width, height] = [19, 15];
      const count = width * height;
      const [cx, cy] = [4 + 8 * next(), 3 + 6 * next()];
      const truth = Float32Array.from({ length: count }, (_, i) =>
        clamp(4.5 - Math.hypot((i % width) - cx, Math.floor(i / width) - cy) + 0.5, 1),
      );
      const planes = Float32Array.from({ length: 3 * count }, (_, k) => {
        const alpha = truth[k % count] ?? 0;
        const c = Math.floor(k / count);
        return alpha * (0.8 - 0.2 * c) + (1 - alpha) * (0.2 + 0.1 * c) + 0.04 * (next() - 0.5);
      });
      const soft = (x: number, y: number) => {
        let [sum, weights] = [0, 0];
        for (let j = -4; j <= 4; j++)
          for (let i = -4; i <= 4; i++) {
            const weight = Math.exp(-(i * i + j * j) / (2 * 1.4 ** 2));
            weights += weight;
            sum += weight * (truth[clamp(y + j, height - 1) * width + clamp(x + i, width - 1)] ?? 0);
          }
        return sum / weights;
      };
      const p = Float32Array.from({ length: count }, (_, i) => soft(i % width, Math.floor(i / width)));
      const guide: Guide = {
        planes,
        width,
        height,
        scale: 1,
        offset: 0,
        ...(sampled && {
          sampleConfidence: Float32Array.from(p, () => 0.8 * next()),
          sampledAlpha: Float32Array.from(truth, (v) => clamp(v + 0.1 * (next() - 0.5), 1)),
        }),
      };
      const { alpha, uncertain } = kernels.deblurMatte(guide, p, 2);
      const moved = Float32Array.from(p, (v, i) => {
        const c = guide.sampleConfidence?.[i] ?? 0;
        return v + c * ((guide.sampledAlpha?.[i] ?? 0) - v);
      });
      const start = Float64Array.from(moved, (v, i) => (uncertain[i] ? v : Math.round(v)));
      const sigma = kernels.blurOf(moved, width, height, 0);
      const exact = minimum(guide, p, start, uncertain, sigma);
      let [off, gap, most] = [0, 0, 0];
      for (let i = 0; i < count; i++) {
        const error = Math.abs((alpha[i] ?? 0) - (exact[i] ?? 0));
        off += error ** 2;
        gap += ((start[i] ?? 0) - (exact[i] ?? 0)) ** 2;
        most = Math.max(most, error);
      }
      t.log(seed, Math.sqrt(off / gap), most, Math.sqrt(gap / count));
      t.true(gap / count > 1e-3);
      t.true(off < 0.01 * gap);
      t.true(most < 0.06);
    }
  });
}
