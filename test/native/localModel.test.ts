import test from 'ava';
import { type Guide, loadKernels } from './kernelsAddon.ts';
import { random } from './kernelsImages.ts';

const kernels = loadKernels();

const SIDE = 7; // of a window; a guide of this size has its whole window in the middle
const SIZE = SIDE * SIDE;
const MIDDLE = 3;
const CHANNELS = 4; // of a network pixel
const EPSILON = 1e-7; // added to the colours' variances, by definition

type Triple = readonly [number, number, number];

interface Window {
  readonly guide: Guide;
  readonly alpha: Float32Array;
}

interface Model {
  readonly plane: Triple;
  readonly offset: number;
}

const axes = [0, 1, 2] as const;
const triple = (of: (axis: 0 | 1 | 2) => number): Triple => [of(0), of(1), of(2)];
const mean = (of: (index: number) => number) => {
  let sum = 0;
  for (let i = 0; i < SIZE; i++) sum += of(i);
  return sum / SIZE;
};
const dot = (a: Triple, b: Triple) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

const colourOf =
  ({ guide }: Window) =>
  (index: number): Triple =>
    triple((c) => (guide.planes[c * SIZE + index] ?? 0) * guide.scale + guide.offset);

/** Gaussian elimination with the largest pivot of each column. */
function solve(matrix: readonly Triple[], right: Triple): Triple {
  const rows = matrix.map((row, i) => [...row, right[i as 0 | 1 | 2]]);
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0;
  for (let k = 0; k < 3; k++) {
    const pivot = [0, 1, 2].slice(k).reduce((a, b) => (Math.abs(at(b, k)) > Math.abs(at(a, k)) ? b : a));
    const [low, high] = [rows[k] ?? [], rows[pivot] ?? []];
    rows[k] = high;
    if (pivot !== k) rows[pivot] = low;
    for (let i = k + 1; i < 3; i++) {
      const by = at(i, k) / at(k, k);
      rows[i] = (rows[i] ?? []).map((value, j) => value - by * at(k, j));
    }
  }
  const c = at(2, 3) / at(2, 2);
  const b = (at(1, 3) - at(1, 2) * c) / at(1, 1);
  return [(at(0, 3) - at(0, 1) * b - at(0, 2) * c) / at(0, 0), b, c];
}

/** The plane of a window as matte/local_model.h defines them, in double precision and centred. */
function modelOf(window: Window): Model {
  const colour = colourOf(window);
  const alpha = (index: number) => window.alpha[index] ?? 0;
  const centre = triple((c) => mean((i) => colour(i)[c]));
  const level = mean(alpha);
  const away = (index: number, c: 0 | 1 | 2) => colour(index)[c] - centre[c];
  const matrix = axes.map((a) =>
    triple((b) => mean((i) => away(i, a) * away(i, b)) + (a === b ? EPSILON : 0)),
  );
  const plane = solve(
    matrix,
    triple((c) => mean((i) => away(i, c) * (alpha(i) - level))),
  );
  return { plane, offset: level - dot(plane, centre) };
}

function fastModelOf({ guide, alpha }: Window): Model {
  const all = kernels.localModel(guide, alpha, MIDDLE, 1, false);
  const of = (channel: number) => all[MIDDLE * CHANNELS + channel] ?? Number.NaN;
  return { plane: [of(0), of(1), of(2)], offset: of(3) };
}

/**
 * Bounds of rounding errors, with u = 2^-24 and colours and alpha at most 1/2 from the subtracted offset.
 *
 * A mean of 49 products of at most 1/4, summed as a tree of six levels, is wrong by at most 8 u / 4, the product of two
 * means of at most 1/2 by 8 u / 2, the colours themselves by 3 u / 2, which moves a covariance by 3 u / 2 at most, and the
 * subtraction adds u / 4: below 8 u together. LDL^T of three rows adds at most 6 u times the trace, which is at most 3/4.
 * So the matrix is wrong by at most E = 13 u an entry, the right side by at most e = 8 u. To first order the solution of
 * M a = s is wrong by M^-1 (de - dE a), and the mean square of what this does to alpha in the window is at most
 * |de - dE a|^2 * max(l / (l + epsilon)^2) = |de - dE a|^2 / (4 epsilon).
 */
const U = 2 ** -24;
const limitOfAlpha = (size: number) =>
  (Math.sqrt(3) * 8 * U + 3 * 13 * U * size) / (2 * Math.sqrt(EPSILON)) + 8 * U * (1 + size);

/** Colours t and 1 - t between two, and alpha that follows t: a typical edge. */
function edge(next: () => number, first: Triple, second: Triple, noise: number): Window {
  const planes = new Float32Array(3 * SIZE);
  const alpha = new Float32Array(SIZE);
  const [dx, dy, start] = [next() - 0.5, next() - 0.5, next()];
  const clamp = (v: number) => Math.min(Math.max(v, 0), 1);
  for (let i = 0; i < SIZE; i++) {
    const t = clamp(dx * ((i % SIDE) - MIDDLE) + dy * (Math.floor(i / SIDE) - MIDDLE) + start);
    for (const c of axes) {
      const value = first[c] * t + second[c] * (1 - t) + noise * (next() - 0.5);
      planes[c * SIZE + i] = (clamp(value) - Math.fround(0.449)) / Math.fround(0.226);
    }
    alpha[i] = clamp(t + 0.1 * (next() - 0.5));
  }
  const [scale, offset] = [Math.fround(0.226), Math.fround(0.449)];
  return { guide: { planes, width: SIDE, height: SIDE, scale, offset }, alpha };
}

const gray = (v: number): Triple => [v, v, v];
const any = (next: () => number): Triple => [next(), next(), next()];

const kinds: Readonly<Record<string, (next: () => number) => Window>> = {
  'of grays': (next) => edge(next, gray(next()), gray(next()), 0),
  'of bright grays': (next) => edge(next, gray(0.95), gray(0.99), 0),
  'of nearly grays': (next) => edge(next, gray(next()), gray(next()), 1 / 255),
  'of two colours': (next) => edge(next, any(next), any(next), 0),
  'of nearly two colours': (next) => edge(next, any(next), any(next), 1 / 255),
  'of one colour': (next) => {
    const colour = any(next);
    return edge(next, colour, colour, 0);
  },
  'of hardly more than one colour': (next) => {
    const colour = any(next);
    return edge(next, colour, colour, 1 / 255);
  },
  'of any colours': (next) => edge(next, any(next), any(next), 2),
};

for (const [kind, make] of Object.entries(kinds)) {
  test(`planes of windows ${kind} agree with double precision`, (t) => {
    const next = random(7);
    const worst = { alpha: 0, share: 0 };
    for (let round = 0; round < 400; round++) {
      const window = make(next);
      const wanted = modelOf(window);
      const found = fastModelOf(window);
      const colour = colourOf(window);
      const wrong = (index: number) =>
        dot(found.plane, colour(index)) + found.offset - dot(wanted.plane, colour(index)) - wanted.offset;
      const error = Math.sqrt(mean((i) => wrong(i) ** 2));
      const limit = limitOfAlpha(Math.hypot(...wanted.plane));
      worst.alpha = Math.max(worst.alpha, error);
      worst.share = Math.max(worst.share, error / limit);
    }
    t.log(JSON.stringify(worst));
    t.true(worst.share <= 1);
  });
}
