import { createRequire } from 'node:module';
import test from 'ava';
import type { Image } from './kernels_addon.ts';

/** native/classify as test/native/classify.cc opens it; `scalar` asks for the definition. */
interface ClassifyAddon {
  /** Weighted mean, mean, weighted maximum and maximum of each map. */
  poolMaps(maps: Float32Array, weights: Float32Array, scalar: boolean): Float32Array;
  statistics(image: Image, planes: Float32Array, side: number, scalar: boolean): Float32Array;
}

const addon = createRequire(import.meta.url)('../../../native/Release/cutout_test.node') as ClassifyAddon;

function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const floats = (count: number, value: (at: number) => number) =>
  Float32Array.from({ length: count }, (_, at) => value(at));

test('maps are pooled like their definition, whatever their length', (t) => {
  const random = randoms(2);
  for (const size of [1, 15, 16, 17, 256, 1000]) {
    const maps = floats(size * 3, () => random() * 8 - 4);
    const weights = floats(size, random);
    const fast = addon.poolMaps(maps, weights, false);
    const scalar = addon.poolMaps(maps, weights, true);
    t.is(fast.length, 12);
    for (let at = 0; at < 12; at++) {
      const [a = Number.NaN, b = Number.NaN] = [fast[at], scalar[at]];
      if (at % 4 < 2) t.true(Math.abs(a - b) < 4e-5, `mean ${at} of ${size}: ${a} ${b}`);
      else t.is(a, b);
    }
  }
});

test('weights pick what counts; without any the plain mean is taken', (t) => {
  const maps = Float32Array.of(1, 2, 3, 10);
  t.deepEqual([...addon.poolMaps(maps, Float32Array.of(0, 1, 1, 0), false)], [2.5, 4, 3, 10]);
  t.deepEqual([...addon.poolMaps(maps, new Float32Array(4), false)], [4, 4, 0, 10]);
});

const NAMES = [
  ...['transparent', 'soft', 'flat', 'texture', 'edge', 'colour1', 'colour4', 'colour16', 'entropy'],
  ...['saturation', 'saturated', 'gray', 'borderUniform', 'borderLight', 'borderDark', 'background'],
  ...['lightness', 'contrast'],
] as const;

type Named = Record<(typeof NAMES)[number], number>;

function statistics(
  side: number,
  colour: (x: number, y: number) => readonly number[],
  alpha = 255,
  scalar = false,
): Named {
  const planes = floats(3 * side * side, (at) => {
    const pixel = at % (side * side);
    return colour(pixel % side, Math.floor(pixel / side))[Math.floor(at / (side * side))] ?? Number.NaN;
  });
  const data = new Uint8Array(side * side * 4).fill(alpha);
  const found = addon.statistics({ data, width: side, height: side, stride: side * 4 }, planes, side, scalar);
  if (found.length !== NAMES.length) throw new Error(`${found.length} statistics`);
  return Object.fromEntries(NAMES.map((name, at) => [name, found[at]])) as Named;
}

test('statistics are those of their definition, pixel by pixel', (t) => {
  const random = randoms(3);
  const noise = () => [random() * 270 - 5, random() * 255, random() * 255];
  const pictures: Record<string, (x: number, y: number) => readonly number[]> = {
    noise,
    slope: (x, y) => [x * 3.7, y * 2.1, 255 - x],
    stripes: (x) => (x % 4 < 2 ? [255, 0, 0] : [0, 255, 255]),
    flat: () => [200, 200, 200],
    'soft noise': (x) => [100 + random() * 20, 100 + x / 2, 90 + random() * 5],
  };
  for (const [title, colour] of Object.entries(pictures)) {
    for (const side of [8, 33, 64, 120]) {
      // Both versions have to see the same noise.
      const seen = new Map<string, readonly number[]>();
      const same = (x: number, y: number) => {
        const key = `${x} ${y}`;
        const known = seen.get(key) ?? colour(x, y);
        seen.set(key, known);
        return known;
      };
      const fast = statistics(side, same);
      const scalar = statistics(side, same, 255, true);
      for (const name of NAMES)
        t.true(
          Math.abs(fast[name] - scalar[name]) < 1e-5,
          `${title} ${side} ${name}: ${fast[name]} ${scalar[name]}`,
        );
      t.true(
        Object.values(fast).every((value) => value >= 0 && value <= 1),
        title,
      );
    }
  }
});

test('a drawing and a photograph differ in what they should', (t) => {
  const random = randoms(4);
  const drawing = statistics(128, (x, y) =>
    Math.hypot(x - 64, y - 64) < 40 ? [220, 30, 30] : [255, 255, 255],
  );
  const photo = statistics(128, (x, y) => [
    90 + 40 * Math.sin(x / 9) + 30 * random(),
    80 + y / 2 + 20 * random(),
    70,
  ]);
  t.true(drawing.flat > 0.9 && photo.flat < 0.1);
  t.true(drawing.texture < 0.1 && photo.texture > 0.5);
  t.is(drawing.borderUniform, 1);
  t.is(drawing.borderLight, 1);
  t.true(drawing.colour4 > 0.99 && photo.colour4 < 0.5);
  t.true(Math.abs(drawing.background - (1 - (Math.PI * 40 ** 2) / 128 ** 2)) < 0.01);
});

test('alpha is counted at the source', (t) => {
  const gray = () => [128, 128, 128];
  t.like(statistics(16, gray, 0), { transparent: 1, soft: 0 });
  t.like(statistics(16, gray, 7), { transparent: 0, soft: 1 });
  t.like(statistics(16, gray, 255), { transparent: 0, soft: 0 });
  const planes = new Float32Array(3 * 64);
  const wide = new Uint8Array(2000 * 3 * 4);
  for (let at = 0; at < 2000 * 3; at++) wide[at * 4 + 3] = at % 2000 < 1000 ? 0 : 255;
  const found = addon.statistics({ data: wide, width: 2000, height: 3, stride: 8000 }, planes, 8, false);
  t.is(found[0], 0.5);
});
