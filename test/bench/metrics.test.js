import test from 'ava';
import { random } from '../../bench/quality/generate/random.js';
import { dilate, uncertainBand } from '../../bench/quality/metrics/band.js';
import { interval, mean } from '../../bench/quality/metrics/bootstrap.js';
import { boundaryIou } from '../../bench/quality/metrics/boundary.js';
import { colourError, visibleError } from '../../bench/quality/metrics/colour.js';
import { connectivityError } from '../../bench/quality/metrics/connectivity.js';
import { nearestRows } from '../../bench/quality/metrics/distance.js';
import { errors, grossError } from '../../bench/quality/metrics/errors.js';
import { gradientError } from '../../bench/quality/metrics/gradient.js';
import { score } from '../../bench/quality/metrics/index.js';
import { regionScores } from '../../bench/quality/metrics/regions.js';
import { structure } from '../../bench/quality/metrics/structure.js';
import { weightedF } from '../../bench/quality/metrics/weighted.js';

const close = (t, value, wanted, slack = 1e-6) =>
  t.true(Math.abs(value - wanted) <= slack * Math.max(1, Math.abs(wanted)), `${value} instead of ${wanted}`);

const size = { width: 96, height: 64 };

/** A matte and its truth in integers, so that another program can construct the same. */
function pair() {
  const { width, height } = size;
  const [matte, truth] = [new Uint8Array(width * height), new Uint8Array(width * height)];
  const clip = (value) => Math.min(255, Math.max(0, value));
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      const [far, near] = [(x - 40) ** 2 + (y - 30) ** 2, (x - 80) ** 2 + (y - 12) ** 2];
      let a = clip(Math.max((400 - far) * 2, (36 - near) * 12) + 128);
      if (y >= 50 && y < 54 && x >= 10 && x < 90) a = 90;
      let m = Math.floor((a * 7) / 8) + (x > 20 ? (x * 31 + y * 17 + x * y) % 23 : 0);
      if (x > 70 && y > 40) m = Math.floor(m / 2) + 40;
      truth[i] = a;
      matte[i] = clip(m);
    }
  }
  return { matte, truth, band: truth.map((a) => (a > 0 && a < 255 ? 1 : 0)) };
}

/** Computed with NumPy, SciPy and OpenCV from the definitions, for that pair. */
const GOLD = {
  matte: 397119,
  truth: 376912,
  sad: 3.15062744e-1,
  mae: 5.12797423e-2,
  bandMse: 1.982691e-3,
  grad: 4.13630981e-2,
  conn: 0.012176470588235292,
  maxF: 0.9979407390458757,
  adaptiveF: 0.9969234275296264,
  meanE: 0.8476967356468039,
  weightedF: 0.7678382444868301,
  structure: 0.9275359611624594,
  boundaryIou: 0.9203084832904884,
};

test('agrees with implementations in NumPy, SciPy and OpenCV on the same image', (t) => {
  const { matte, truth, band } = pair();
  t.is(
    matte.reduce((sum, value) => sum + value, 0),
    GOLD.matte,
    'the same matte',
  );
  t.is(
    truth.reduce((sum, value) => sum + value, 0),
    GOLD.truth,
    'the same truth',
  );
  const { sad, mae, bandMse } = errors(matte, truth, band, size);
  close(t, sad, GOLD.sad);
  close(t, mae, GOLD.mae);
  close(t, bandMse, GOLD.bandMse);
  close(t, gradientError(matte, truth, band, size), GOLD.grad);
  close(t, connectivityError(matte, truth, band, size), GOLD.conn);
  const { maxF, adaptiveF, meanE } = regionScores(matte, truth);
  close(t, maxF, GOLD.maxF);
  close(t, adaptiveF, GOLD.adaptiveF);
  close(t, meanE, GOLD.meanE);
  close(t, weightedF(matte, truth, size), GOLD.weightedF);
  close(t, structure(matte, truth, size), GOLD.structure);
  close(t, boundaryIou(matte, truth, size), GOLD.boundaryIou);
});

test('a perfect matte has no error and full scores', (t) => {
  const { truth } = pair();
  const hard = truth.map((a) => (a > 128 ? 255 : 0));
  const found = score({ matte: hard, truth: hard, ...size });
  for (const name of ['sad', 'mae', 'mse', 'bandMse', 'gross', 'grad', 'conn']) t.is(found[name], 0, name);
  for (const name of ['maxF', 'adaptiveF', 'weightedF', 'boundaryIou']) close(t, found[name], 1);
  close(t, found.structure, 1, 1e-3);
});

test('errors by hand: four pixels', (t) => {
  const found = errors(
    Uint8Array.of(255, 0, 51, 102),
    Uint8Array.of(255, 51, 51, 255),
    Uint8Array.of(0, 1, 1, 0),
    { width: 2, height: 2 },
  );
  close(t, found.sad, (0.2 + 0.6) / 1000);
  close(t, found.mae, 0.2);
  close(t, found.mse, (0.04 + 0.36) / 4);
  close(t, found.bandSad, 0.2 / 1000);
  close(t, found.bandMse, 0.02);
  // One block: .8 too little of an area of 2.4.
  close(t, found.gross, 0.8 / 2.4);
});

test('softness alone is no gross error; a filled gap is', (t) => {
  const { width, height } = { width: 128, height: 96 };
  const draw = (value) =>
    Uint8Array.from({ length: width * height }, (_, i) => value(i % width, Math.floor(i / width)));
  // Stripes two pixels wide in a square, and a matte of a network that cannot resolve them.
  const truth = draw((x, y) => (x >= 32 && x < 96 && y >= 16 && y < 80 && x % 4 < 2 ? 255 : 0));
  const soft = draw((x, y) => (x >= 32 && x < 96 && y >= 16 && y < 80 ? 127 : 0));
  const filled = draw((x, y) => (x >= 32 && x < 96 && y >= 16 && y < 80 ? 255 : 0));
  t.true(grossError(soft, truth, { width, height }) < 0.01);
  close(t, grossError(filled, truth, { width, height }), 1);
  close(t, grossError(new Uint8Array(width * height), truth, { width, height }), 1);
});

test('the gradient is the 9 × 9 kernel of unit length, border replicated', (t) => {
  const small = { width: 13, height: 11 };
  const next = random(3);
  const draw = () => Uint8Array.from({ length: 143 }, () => Math.floor(next() * 256));
  const [matte, truth, band] = [draw(), draw(), draw().map((a) => a & 1)];
  const gauss = (v) => Math.exp(-(v * v) / (2 * 1.4 * 1.4)) / (1.4 * Math.sqrt(2 * Math.PI));
  const kernel = [];
  for (let v = -4; v <= 4; v++) for (let u = -4; u <= 4; u++) kernel.push((gauss(v) * -u * gauss(u)) / 1.96);
  const length = Math.hypot(...kernel);
  const clamp = (value, end) => Math.min(end - 1, Math.max(0, value));
  const magnitude = (a, x, y) => {
    let [gx, gy] = [0, 0];
    for (let v = -4, k = 0; v <= 4; v++) {
      for (let u = -4; u <= 4; u++, k++) {
        gx += (kernel[k] / length) * (a[clamp(y + v, 11) * 13 + clamp(x + u, 13)] / 255);
        gy += (kernel[k] / length) * (a[clamp(y + u, 11) * 13 + clamp(x + v, 13)] / 255);
      }
    }
    return Math.hypot(gx, gy);
  };
  let sum = 0;
  for (let i = 0; i < 143; i++) {
    const [x, y] = [i % 13, Math.floor(i / 13)];
    if (band[i]) sum += (magnitude(matte, x, y) - magnitude(truth, x, y)) ** 2;
  }
  close(t, gradientError(matte, truth, band, small), sum / 1000, 1e-5);
});

test('connectivity by hand: an isolated spot does not count, one that touches does', (t) => {
  const line = { width: 6, height: 1 };
  const all = new Uint8Array(6).fill(1);
  const truth = Uint8Array.of(255, 255, 255, 0, 0, 0);
  // Both have the pixels of the largest part at every level; a lone pixel of alpha 1 has l = 0, φ = 0 against φ = 1.
  close(t, connectivityError(Uint8Array.of(255, 255, 255, 0, 0, 255), truth, all, line), 1 / 1000);
  t.is(connectivityError(truth, truth, all, line), 0);
  // α .4 where the truth is 1: l = .4 for both; d = 0 and .6, so φ = 1 and .4.
  close(t, connectivityError(Uint8Array.of(255, 255, 102, 0, 0, 0), truth, all, line), 0.6 / 1000);
  // Less than .15 apart does not count.
  t.is(connectivityError(Uint8Array.of(255, 255, 255, 38, 0, 0), truth, all, line), 0);
});

test('connectivity agrees with a flood fill', (t) => {
  const { width, height } = { width: 17, height: 12 };
  const next = random(11);
  for (let round = 0; round < 20; round++) {
    const rough = Uint8Array.from({ length: width * height }, () => Math.floor(next() ** 0.5 * 255.99));
    const truth = Uint8Array.from(rough, (a) => (next() < 0.7 ? a : Math.floor(next() * 256)));
    const level = new Float64Array(rough.length).fill(-1);
    for (let tenth = 1; tenth <= 10; tenth++) {
      const inside = rough.map((a, i) => (Math.min(a, truth[i]) * 10 >= 255 * tenth ? 1 : 0));
      let best = [];
      for (let i = 0; i < inside.length; i++) {
        if (inside[i] !== 1) continue;
        const part = [i];
        inside[i] = 2;
        for (const at of part) {
          const x = at % width;
          for (const to of [x > 0 ? at - 1 : -1, x < width - 1 ? at + 1 : -1, at - width, at + width]) {
            if (inside[to] === 1) {
              inside[to] = 2;
              part.push(to);
            }
          }
        }
        if (part.length > best.length) best = part;
      }
      const largest = new Set(best);
      for (let i = 0; i < level.length; i++) if (level[i] < 0 && !largest.has(i)) level[i] = (tenth - 1) / 10;
    }
    let sum = 0;
    const phi = (a, l) => (a / 255 - l >= 0.15 - 1e-12 ? 1 - (a / 255 - l) : 1);
    for (let i = 0; i < level.length; i++) {
      const l = level[i] < 0 ? 1 : level[i];
      sum += Math.abs(phi(rough[i], l) - phi(truth[i], l));
    }
    const all = new Uint8Array(rough.length).fill(1);
    close(t, connectivityError(rough, truth, all, { width, height }), sum / 1000, 1e-9);
  }
});

test('distances and nearest pixels are exact', (t) => {
  const next = random(5);
  for (const share of [0.001, 0.02, 0.4]) {
    const [width, height] = [41, 29];
    const mask = Uint8Array.from({ length: width * height }, () => (next() < share ? 1 : 0));
    mask[300] = 1;
    let rows = 0;
    nearestRows(mask, { width, height }, (y, squared, nearest) => {
      rows++;
      for (let x = 0; x < width; x++) {
        let least = Number.POSITIVE_INFINITY;
        mask.forEach((set, i) => {
          if (set) least = Math.min(least, (x - (i % width)) ** 2 + (y - Math.floor(i / width)) ** 2);
        });
        if (squared[x] !== least) t.fail(`${x}, ${y}: ${squared[x]} instead of ${least}`);
        const at = nearest[x];
        t.is((x - (at % width)) ** 2 + (y - Math.floor(at / width)) ** 2, least);
        t.is(mask[at], 1);
      }
    });
    t.is(rows, height);
  }
  nearestRows(new Uint8Array(6), { width: 3, height: 2 }, () => t.fail('there is nothing to be near to'));
});

test('F and E follow their definitions at every threshold', (t) => {
  const { matte, truth } = pair();
  const { curve, meanE } = regionScores(matte, truth);
  const pixels = matte.length;
  let total = 0;
  for (let threshold = 0; threshold < 256; threshold++) {
    let [hit, found, there] = [0, 0, 0];
    matte.forEach((a, i) => {
      const [p, g] = [a >= threshold, truth[i] > 128];
      hit += p && g;
      found += p;
      there += g;
    });
    const [precision, recall] = [found ? hit / found : 0, hit / there];
    close(t, curve[threshold], hit ? (1.3 * precision * recall) / (0.3 * precision + recall) : 0, 1e-12);
    let sum = 0;
    matte.forEach((m, i) => {
      const a = (m >= threshold) - found / pixels;
      const b = (truth[i] > 128) - there / pixels;
      sum += ((2 * a * b) / (a * a + b * b + Number.EPSILON) + 1) ** 2 / 4;
    });
    total += sum / (pixels - 1);
  }
  close(t, meanE, total / 256, 1e-9);
});

test('boundary IoU follows its definition, at the border of the image too', (t) => {
  const { width, height } = { width: 70, height: 50 };
  const radius = Math.round(0.02 * Math.hypot(width, height));
  t.is(radius, 2);
  const next = random(8);
  for (let round = 0; round < 6; round++) {
    const blob = () => {
      const [cx, cy, r] = [next() * width, next() * height, 8 + next() * 20];
      return Uint8Array.from({ length: width * height }, (_, i) =>
        Math.hypot((i % width) - cx, Math.floor(i / width) - cy) < r || next() < 0.01 ? 200 : 60,
      );
    };
    const [matte, truth] = [blob(), blob()];
    const edge = (mask, i) => {
      if (mask[i] < 128) return false;
      for (let v = -radius; v <= radius; v++) {
        for (let u = -radius; u <= radius; u++) {
          const [x, y] = [(i % width) + u, Math.floor(i / width) + v];
          if (x < 0 || y < 0 || x >= width || y >= height || mask[y * width + x] < 128) return true;
        }
      }
      return false;
    };
    let [shared, either] = [0, 0];
    for (let i = 0; i < matte.length; i++) {
      const [a, b] = [edge(matte, i), edge(truth, i)];
      shared += a && b;
      either += a || b;
    }
    close(t, boundaryIou(matte, truth, { width, height }), either ? shared / either : 1, 1e-12);
  }
});

test('the band holds what is soft, hard steps, and their surroundings', (t) => {
  const [width, height] = [40, 30];
  const truth = new Uint8Array(width * height).fill(0);
  for (let y = 0; y < height; y++) for (let x = 20; x < width; x++) truth[y * width + x] = 255;
  const band = uncertainBand(truth, { width, height });
  const row = [...band.subarray(0, width)];
  t.deepEqual(
    row,
    Array.from({ length: width }, (_, x) => (x >= 18 && x <= 22 ? 1 : 0)),
  );
  truth[5 * width + 3] = 9;
  t.is(uncertainBand(truth, { width, height })[7 * width + 5], 1);
  t.is(uncertainBand(truth, { width, height })[8 * width + 5], 0);
});

test('dilation reaches exactly so far', (t) => {
  const wrong = [];
  const [width, height] = [23, 17];
  const next = random(2);
  const mask = Uint8Array.from({ length: width * height }, () => (next() < 0.03 ? 1 : 0));
  for (const radius of [0, 1, 4, 30]) {
    const out = dilate(mask, { width, height }, radius);
    out.forEach((value, i) => {
      const near = mask.some(
        (set, k) =>
          set &&
          Math.abs((k % width) - (i % width)) <= radius &&
          Math.abs(Math.floor(k / width) - Math.floor(i / width)) <= radius,
      );
      if (Boolean(value) !== near) wrong.push(`radius ${radius} at ${i}`);
    });
  }
  t.deepEqual(wrong.slice(0, 5), []);
});

test('colours count in soft pixels, by their alpha; transparent pixels of the result have none', (t) => {
  const truth = {
    alpha: Uint8Array.of(0, 102, 255, 204),
    foreground: Uint8Array.from([9, 9, 9, 100, 100, 100, 9, 9, 9, 50, 50, 50]),
  };
  const rgb = Uint8Array.from([0, 0, 0, 151, 100, 100, 0, 0, 0, 50, 50, 101]);
  const { error, pixels } = colourError({ rgb }, truth);
  t.is(pixels, 2);
  close(t, error, (0.4 * 0.2 + 0.8 * 0.2) / 6);
  close(t, colourError({ rgb, alpha: Uint8Array.of(0, 0, 255, 200) }, truth).error, (0.8 * 0.2) / 3);
  t.true(Number.isNaN(colourError({ rgb, alpha: new Uint8Array(4) }, truth).error));
  // α F = .4 · .4 against the same alpha with .6: .08 on any ground; nothing else differs.
  const seen = visibleError(
    { rgb: Uint8Array.from([0, 0, 0, 151, 151, 151]), alpha: Uint8Array.of(0, 102) },
    truth,
    Uint8Array.of(0, 1),
  );
  close(t, seen, 0.4 * 0.2);
  // A hole of the matte in white is visible on black only.
  const white = { alpha: Uint8Array.of(255), foreground: Uint8Array.of(255, 255, 255) };
  close(
    t,
    visibleError({ rgb: Uint8Array.of(255, 255, 255), alpha: Uint8Array.of(127) }, white, Uint8Array.of(1)),
    128 / 255,
  );
});

test('empty and full truths have scores, not NaN', (t) => {
  const small = { width: 8, height: 5 };
  const [clear, full] = [new Uint8Array(40), new Uint8Array(40).fill(255)];
  const half = new Uint8Array(40).fill(128);
  for (const truth of [clear, full]) {
    const found = score({ matte: half, truth, ...small });
    for (const [name, value] of Object.entries(found)) {
      if (typeof value === 'number') t.true(Number.isFinite(value), `${name} is ${value}`);
    }
  }
  close(t, structure(half, clear, small), 1 - 128 / 255);
  close(t, structure(half, full, small), 128 / 255);
});

test('intervals contain the mean, narrow with more images, and are reproducible', (t) => {
  const next = random(1);
  const draw = (n) => Array.from({ length: n }, () => next());
  const values = draw(40);
  const [low, high] = interval(values, mean);
  t.true(low < mean(values) && mean(values) < high);
  t.deepEqual(interval(values, mean), [low, high]);
  const [from, to] = interval(draw(640), mean);
  t.true(to - from < (high - low) / 2.5);
  // About 1.96 deviations of the mean, 1 / √(12 n), to each side.
  close(t, (to - from) / 2, 1.96 / Math.sqrt(12 * 640), 0.01);
  t.deepEqual(interval([3, 3, 3], mean), [3, 3]);
});
