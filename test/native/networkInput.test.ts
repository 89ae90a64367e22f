import test from 'ava';
import fc from 'fast-check';
import { type Image, loadKernels, type NetworkInput, SCALAR } from './kernelsAddon.ts';
import { anyImage, copy, paint, random } from './kernelsImages.ts';

const kernels = loadKernels();
const plain = (width: number, height: number): NetworkInput => ({
  width,
  height,
  mean: [0, 0, 0],
  std: [1, 1, 1],
});

const anySpec = fc.record({
  width: fc.integer({ min: 1, max: 60 }),
  height: fc.integer({ min: 1, max: 60 }),
  mean: fc.constantFrom<NetworkInput['mean']>([128, 128, 128], [123.675, 116.28, 103.53]),
  std: fc.constantFrom<NetworkInput['std']>([256, 256, 256], [58.395, 57.12, 57.375], [1, 1, 1]),
});

/** Greatest difference in levels of 0..255. */
function difference(a: Float32Array, b: Float32Array, spec: NetworkInput): number {
  const plane = spec.width * spec.height;
  let most = a.length === b.length && a.length === 3 * plane ? 0 : Number.POSITIVE_INFINITY;
  a.forEach((value, i) => {
    const std = spec.std[Math.floor(i / plane)] ?? 0;
    most = Math.max(most, Math.abs(value - (b[i] ?? Number.NaN)) * std);
  });
  return most;
}

test('network input is within 0.002 levels of its definition for any size, stride and alpha', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyImage(), anySpec, (image, spec) => {
        const fast = kernels.fillNetworkInput(image, spec, 1);
        return difference(fast, kernels.fillNetworkInput(image, spec, SCALAR), spec) <= 0.002;
      }),
      { numRuns: 150 },
    ),
  );
});

test('network input of images wider than a tile and lines of one pixel follows the definition', (t) => {
  const next = random(5);
  const noise = (width: number, height: number): Image =>
    paint(width, height, (x) => [next() * 256, next() * 256, next() * 256, x % 1500 < 1200 ? 255 : 90]);
  for (const image of [noise(2311, 41), noise(1, 1900), noise(1900, 1), noise(1, 1)]) {
    const spec = plain(37, 29);
    const fast = kernels.fillNetworkInput(image, spec, 2);
    const worst = difference(fast, kernels.fillNetworkInput(image, spec, SCALAR), spec);
    t.true(worst <= 0.002, `${image.width}x${image.height}: ${worst}`);
  }
});

test('network input has the same bits for any number of threads and leaves the image alone', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyImage(), anySpec, (image, spec) => {
        const before = copy(image);
        const alone = kernels.fillNetworkInput(image, spec, 0);
        const same = [1, 3].every((threads) =>
          Buffer.from(alone.buffer).equals(
            Buffer.from(kernels.fillNetworkInput(image, spec, threads).buffer),
          ),
        );
        return same && Buffer.from(image.data).equals(before.data);
      }),
      { numRuns: 40 },
    ),
  );
});

test('network input keeps a flat image flat, shrinking and enlarging', (t) => {
  const wrong: string[] = [];
  const image = paint(531, 217, () => [200, 7, 91, 255]);
  for (const [width, height] of [
    [64, 64],
    [600, 300],
    [64, 300],
  ] as const) {
    const out = kernels.fillNetworkInput(image, plain(width, height), 1);
    const plane = width * height;
    out.forEach((value, i) => {
      const expected = [200, 7, 91][Math.floor(i / plane)] ?? 0;
      if (Math.abs(value - expected) > 0.001) wrong.push(`${value} instead of ${expected} at ${i}`);
    });
  }
  t.deepEqual(wrong.slice(0, 5), []);
});

test('network input keeps the mean of the image when it shrinks it', (t) => {
  const next = random(11);
  const image = paint(331, 257, () => [next() * 256, next() * 256, next() * 256, 255]);
  const out = kernels.fillNetworkInput(image, plain(40, 30), 1);
  for (const channel of [0, 1, 2]) {
    let before = 0;
    for (let i = channel; i < image.data.length; i += 4) before += image.data[i] ?? 0;
    let after = 0;
    for (const value of out.subarray(channel * 1200, channel * 1200 + 1200)) after += value;
    const error = Math.abs(before / (331 * 257) - after / 1200);
    t.true(error < 0.001, `channel ${channel}: ${error}`);
  }
});

test('network input distributes a pixel among the outputs that share it', (t) => {
  // 3 -> 2: each output covers one and a half pixels.
  const image = paint(3, 1, (x) => [[30, 90, 240][x] ?? 0, 0, 0, 255]);
  const out = kernels.fillNetworkInput(image, plain(2, 1), 0);
  t.true(Math.abs((out[0] ?? 0) - (30 + 90 / 2) / 1.5) < 1e-4);
  t.true(Math.abs((out[1] ?? 0) - (90 / 2 + 240) / 1.5) < 1e-4);
});

test('network input does not alias: one-pixel stripes become gray', (t) => {
  const image = paint(4000, 40, (x) => (x % 2 === 0 ? [255, 255, 255, 255] : [0, 0, 0, 255]));
  const out = kernels.fillNetworkInput(image, plain(1024, 10), 2);
  // An output covers 3.9 stripes: at most 0.1 of a stripe is unbalanced on each side.
  const [least, most] = [Math.min(...out), Math.max(...out)];
  t.true(least > 255 * 0.48 && most < 255 * 0.52, `${least}..${most}`);
});

test('network input composites transparency over gray 128, then normalises', (t) => {
  const spec: NetworkInput = { width: 1, height: 1, mean: [128, 28, 0], std: [256, 100, 2] };
  const clear = kernels.fillNetworkInput(
    paint(5, 5, () => [255, 1, 77, 0]),
    spec,
    0,
  );
  t.deepEqual([...clear], [0, 1, 64]);
  const half = kernels.fillNetworkInput(
    paint(1, 1, () => [255, 0, 128, 51]),
    plain(1, 1),
    0,
  );
  const expected = [255 * 0.2 + 128 * 0.8, 128 * 0.8, 128];
  half.forEach((value, c) => {
    t.true(Math.abs(value - (expected[c] ?? 0)) < 1e-3, `${value}`);
  });
});
