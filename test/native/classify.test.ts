import test from 'ava';
import type { Image } from './kernelsAddon.ts';
import { onEveryLevel } from './levels.ts';
import { borderOf, regionsOf, thumbOf } from './looks.ts';

/** native/classify as exported by test/native/classify.cc. */
interface ClassifyAddon {
  /** Mean and maximum of each map under the weights. */
  poolMaps(maps: Float32Array, weights: Float32Array, threads: number): Float32Array;
  statistics(image: Image, planes: Float32Array, side: number): Float32Array;
  /** Of the subject, then of the rest; weights are side / 2 squared. */
  regions(planes: Float32Array, side: number, weights: Float32Array, threads: number): Float32Array;
}

const addon = onEveryLevel() as ClassifyAddon;

function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The definition: weighted mean and largest weighted value of each map; all weights are 1 if their sum is 0. */
function pooledByDefinition(maps: Float32Array, weights: Float32Array): number[] {
  const n = weights.length;
  const none = weights.every((weight) => weight === 0);
  const weight = (i: number) => (none ? 1 : (weights[i] ?? 0));
  const total = Array.from({ length: n }, (_, i) => weight(i)).reduce((a, b) => a + b);
  return Array.from({ length: maps.length / n }, (_, m) => {
    const products = Array.from({ length: n }, (_, i) => (maps[m * n + i] ?? 0) * weight(i));
    return [products.reduce((a, b) => a + b) / total, Math.max(...products)];
  }).flat();
}

const floats = (count: number, value: (at: number) => number) =>
  Float32Array.from({ length: count }, (_, at) => value(at));

test('maps are pooled by their definition, whatever their length', (t) => {
  const random = randoms(2);
  for (const size of [1, 15, 16, 17, 256, 1000]) {
    const maps = floats(size * 3, () => random() * 8 - 4);
    const weights = floats(size, random);
    const fast = addon.poolMaps(maps, weights, 0);
    const wanted = pooledByDefinition(maps, weights);
    t.is(fast.length, 6);
    for (let at = 0; at < 6; at++) {
      const [a = Number.NaN, b = Number.NaN] = [fast[at], wanted[at]];
      // A product is rounded once; sums of floats of at most 4 may lose 1e-5 of that.
      if (at % 2 === 0) t.true(Math.abs(a - b) < 4e-5, `mean ${at} of ${size}: ${a} ${b}`);
      else t.is(a, Math.fround(b));
    }
  }
});

test('weights select what counts; without weights everything does', (t) => {
  const maps = Float32Array.of(1, 2, 3, 10);
  t.deepEqual([...addon.poolMaps(maps, Float32Array.of(0, 1, 1, 0), 0)], [2.5, 3]);
  t.deepEqual([...addon.poolMaps(maps, new Float32Array(4), 0)], [4, 10]);
});

test('any number of threads pools to the same bits', (t) => {
  const random = randoms(6);
  const [maps, weights] = [floats(40 * 16384, random), floats(16384, random)];
  t.deepEqual(addon.poolMaps(maps, weights, 3), addon.poolMaps(maps, weights, 0));
});

const IMAGE = ['transparent', 'soft', 'borderUniform', 'borderLight', 'borderDark', 'background'] as const;
const REGION = [
  ...['flat', 'smooth', 'texture', 'edge', 'sharp', 'colour1', 'colour4', 'colour16', 'entropy'],
  ...['saturation', 'saturated', 'gray', 'lightness', 'contrast'],
  ...['red', 'yellow', 'green', 'cyan', 'blue', 'magenta'],
] as const;

type Named<Names extends readonly string[]> = Record<Names[number], number>;
type Colour = (x: number, y: number) => readonly number[];

function named<Names extends readonly string[]>(names: Names, values: Float32Array): Named<Names> {
  if (values.length !== names.length) throw new Error(`${values.length} numbers`);
  return Object.fromEntries(names.map((name, at) => [name, values[at]])) as Named<Names>;
}

const planesOf = (side: number, colour: Colour) => {
  const planes = new Float32Array(3 * side * side);
  for (let at = 0; at < side * side; at++) {
    for (const [c, value] of colour(at % side, Math.floor(at / side)).entries()) {
      planes[c * side * side + at] = value;
    }
  }
  return planes;
};

function statistics(side: number, colour: Colour, alpha = 255) {
  const data = new Uint8Array(side * side * 4).fill(alpha);
  const image = { data, width: side, height: side, stride: side * 4 };
  return named(IMAGE, addon.statistics(image, planesOf(side, colour), side));
}

const weightsOf = (side: number, inside: (x: number, y: number) => number) => {
  const half = Math.floor(side / 2);
  return floats(half * half, (at) => inside(at % half, Math.floor(at / half)));
};

/** The part of the image where `inside` holds (blocks of 2 x 2 pixels), and the rest. */
function regions(side: number, colour: Colour, inside: (x: number, y: number) => number) {
  const found = addon.regions(planesOf(side, colour), side, weightsOf(side, inside), 0);
  return {
    inside: named(REGION, found.subarray(0, REGION.length)),
    outside: named(REGION, found.subarray(REGION.length)),
  };
}

/** Kernel and definition must see the same noise. */
function frozen(colour: Colour): Colour {
  const seen = new Map<string, readonly number[]>();
  return (x, y) => {
    const key = `${x} ${y}`;
    const known = seen.get(key) ?? colour(x, y);
    seen.set(key, known);
    return known;
  };
}

function images(random: () => number): Record<string, Colour> {
  return {
    noise: () => [random() * 270 - 5, random() * 255, random() * 255],
    slope: (x, y) => [x * 3.7, y * 2.1, 255 - x],
    stripes: (x) => (x % 4 < 2 ? [255, 0, 0] : [0, 255, 255]),
    flat: () => [200, 200, 200],
    'soft noise': (x) => [100 + random() * 20, 100 + x / 2, 90 + random() * 5],
  };
}

const SIDES = [8, 33, 64, 120] as const;

test('statistics follow their definition, pixel by pixel', (t) => {
  for (const [title, colour] of Object.entries(images(randoms(3)))) {
    for (const side of SIDES) {
      const same = frozen(colour);
      const fast = statistics(side, same);
      const wanted = borderOf(thumbOf(planesOf(side, same), side));
      for (const [name, value] of Object.entries(wanted) as [keyof typeof wanted, number][]) {
        t.true(Math.abs(fast[name] - value) < 1e-7, `${title} ${side} ${name}: ${fast[name]} ${value}`);
      }
      t.true(
        Object.values(fast).every((value) => value >= 0 && value <= 1),
        title,
      );
    }
  }
});

test('inside and outside follow their definition, whatever the weights', (t) => {
  const wrong: string[] = [];
  const random = randoms(5);
  const parts: Record<string, (x: number, y: number) => number> = {
    any: () => random(),
    half: (x) => (x % 8 < 4 ? 1 : 0),
    everywhere: () => 1,
    nowhere: () => 0,
    corner: (x, y) => (x + y === 0 ? 1 : 0),
  };
  for (const [title, colour] of Object.entries(images(random))) {
    for (const side of SIDES) {
      for (const [part, inside] of Object.entries(parts)) {
        const same = frozen(colour);
        const weights = new Map<string, number>();
        const fixed = (x: number, y: number) => {
          const known = weights.get(`${x} ${y}`) ?? inside(x, y);
          weights.set(`${x} ${y}`, known);
          return known;
        };
        const fast = regions(side, same, fixed);
        const wanted = regionsOf(thumbOf(planesOf(side, same), side), weightsOf(side, fixed));
        for (const which of ['inside', 'outside'] as const) {
          for (const name of REGION) {
            const [a, b] = [fast[which][name], wanted[which][name]];
            if (!(Math.abs(a - b) < 1e-5 && a >= 0 && a <= 1))
              wrong.push(`${title} ${side} ${part} ${which} ${name}: ${a} ${b}`);
          }
        }
      }
    }
  }
  t.deepEqual(wrong.slice(0, 5), []);
});

test('wide rows, all white rows and any number of threads give the same counts', (t) => {
  const side = 530;
  const random = randoms(8);
  const weights = floats((side / 2) ** 2, random);
  const colours: Record<string, Colour> = {
    white: () => [255, 255, 255],
    slope: (x, y) => [x / 3, y / 3, 255 - x / 4],
  };
  for (const [title, colour] of Object.entries(colours)) {
    const planes = planesOf(side, colour);
    for (const used of [weights, new Float32Array(weights.length).fill(1)]) {
      const one = addon.regions(planes, side, used, 0);
      const { inside, outside } = regionsOf(thumbOf(planes, side), used);
      const wanted = [inside, outside].flatMap((part) => REGION.map((name) => part[name]));
      const worst = one.reduce((most, value, at) => Math.max(most, Math.abs(value - (wanted[at] ?? 9))), 0);
      t.true(worst < 1e-5, `${title}: off by ${worst}`);
      t.deepEqual(addon.regions(planes, side, used, 3), one);
    }
  }
});

test('each region is described by its own pixels', (t) => {
  const found = regions(
    64,
    (x) => (x < 32 ? [255, 0, 0] : [0, 0, 255]),
    (x) => (x < 16 ? 1 : 0),
  );
  t.like(found.inside, { colour1: 1, saturated: 1, red: 1, blue: 0, gray: 0 });
  t.like(found.outside, { colour1: 1, saturated: 1, red: 0, blue: 1, gray: 0 });
  t.true(Math.abs(found.inside.lightness - 77 / 255) < 0.01);
  t.true(found.inside.edge > 0 && found.outside.edge === 0);
});

test('a negligible region is described by the whole image', (t) => {
  const colour: Colour = (x) => (x < 64 ? [250, 250, 250] : [10, 10, 10]);
  const none = regions(128, colour, () => 0);
  t.deepEqual(none.inside, none.outside);
  const all = regions(128, colour, () => 1);
  t.deepEqual(all.outside, all.inside);
  t.true(Math.abs(all.inside.colour1 - 0.5) < 1e-6);
});

test('a drawing and a photograph differ in the expected features', (t) => {
  const random = randoms(4);
  const disc: Colour = (x, y) => (Math.hypot(x - 64, y - 64) < 40 ? [220, 30, 30] : [255, 255, 255]);
  const noise = frozen((x, y) => [90 + 40 * Math.sin(x / 9) + 30 * random(), 80 + y / 2 + 20 * random(), 70]);
  const drawing = regions(128, disc, () => 1).inside;
  const photo = regions(128, noise, () => 1).inside;
  t.true(drawing.flat > 0.9 && photo.flat < 0.2);
  t.true(drawing.texture < 0.1 && photo.texture > 0.5);
  t.true(drawing.colour4 > 0.95 && photo.colour4 < 0.5);
  const whole = statistics(128, disc);
  t.is(whole.borderUniform, 1);
  t.is(whole.borderLight, 1);
  t.true(Math.abs(whole.background - (1 - (Math.PI * 40 ** 2) / 128 ** 2)) < 0.02);
});

test('alpha is counted in the source', (t) => {
  const gray = () => [128, 128, 128];
  t.like(statistics(16, gray, 0), { transparent: 1, soft: 0 });
  t.like(statistics(16, gray, 7), { transparent: 0, soft: 1 });
  t.like(statistics(16, gray, 255), { transparent: 0, soft: 0 });
  const planes = new Float32Array(3 * 64);
  const wide = new Uint8Array(2000 * 3 * 4);
  for (let at = 0; at < 2000 * 3; at++) wide[at * 4 + 3] = at % 2000 < 1000 ? 0 : 255;
  const found = addon.statistics({ data: wide, width: 2000, height: 3, stride: 8000 }, planes, 8);
  t.is(found[0], 0.5);
});
