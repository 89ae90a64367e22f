import test from 'ava';
import fc from 'fast-check';
import { type Image, loadKernels, type MatteSummary, SCALAR } from './kernelsAddon.ts';
import { anyImage, copy, paddingIntact, paint, pixel, random, sameResult, whole } from './kernelsImages.ts';

const kernels = loadKernels();

interface Alpha {
  readonly p: Float32Array;
  readonly width: number;
  readonly height: number;
}

const flat = (value: number): Alpha => ({ p: Float32Array.of(value), width: 1, height: 1 });

function apply(
  image: Image,
  alpha: Alpha,
  threads = 1,
  roi = whole(image),
  hidden: 'clear' | 'keep' = 'clear',
) {
  const out = copy(image);
  const summary = kernels.applyMatte(out, alpha.p, alpha.width, alpha.height, roi, hidden, threads);
  return { out, summary };
}

/** Mattes with flat and soft regions, NaN and values out of range. */
const anyAlpha: fc.Arbitrary<Alpha> = fc
  .record({
    width: fc.integer({ min: 1, max: 50 }),
    height: fc.integer({ min: 1, max: 50 }),
    kind: fc.constantFrom('zero', 'one', 'noise', 'blob', 'wild'),
    seed: fc.nat(),
  })
  .map(({ width, height, kind, seed }) => {
    const next = random(seed);
    const [cx, cy, radius] = [next() * width, next() * height, next() * width];
    const value = (x: number, y: number): number => {
      if (kind === 'zero') return next() * 0.001;
      if (kind === 'one') return 1 - next() * 0.001;
      if (kind === 'noise') return next();
      if (kind === 'wild')
        return [Number.NaN, -3, 7, Number.POSITIVE_INFINITY, next()][Math.floor(next() * 5)] ?? 0;
      return Math.min(1, Math.max(0, (radius - Math.hypot(x - cx, y - cy)) / 3 + 0.5));
    };
    const p = Float32Array.from({ length: width * height }, (_, i) =>
      value(i % width, Math.floor(i / width)),
    );
    return { p, width, height };
  });

const anyRoi = (image: Image) =>
  fc.oneof(
    fc.constant(whole(image)),
    fc.record({
      left: fc.integer({ min: 0, max: image.width }),
      top: fc.integer({ min: 0, max: image.height }),
      width: fc.integer({ min: 0, max: image.width + 5 }),
      height: fc.integer({ min: 0, max: image.height + 5 }),
    }),
  );

const anyCall = (maxWidth: number, maxHeight: number) =>
  anyImage(maxWidth, maxHeight).chain((image) =>
    fc.record({
      image: fc.constant(image),
      alpha: anyAlpha,
      roi: anyRoi(image),
      hidden: fc.constantFrom<'clear' | 'keep'>('clear', 'keep'),
    }),
  );

/**
 * Alpha of an opaque pixel before rounding, in levels of 0..255, in double precision: Catmull-Rom between pixel
 * centres, the border repeated, each cubic limited to the range of its two inner samples; below 0.02 is 0, above 0.98 is 1.
 */
function alphaByDefinition(alpha: Alpha, image: Image, x: number, y: number): number {
  const [background, foreground] = [Math.fround(0.02), Math.fround(0.98)];
  const sample = (column: number, row: number) => {
    const [i, j] = [
      Math.min(Math.max(column, 0), alpha.width - 1),
      Math.min(Math.max(row, 0), alpha.height - 1),
    ];
    const value = alpha.p[j * alpha.width + i] ?? 0;
    if (!(value >= background)) return 0;
    return value <= foreground ? value : 1;
  };
  const cubic = (f: (k: number) => number, t: number) => {
    const [a, b, c, d] = [f(-1), f(0), f(1), f(2)];
    const value = b + (t / 2) * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
    return Math.min(Math.max(value, Math.min(b, c)), Math.max(b, c));
  };
  const position = (at: number, samples: number, pixels: number) =>
    Math.min(Math.max(((at + 0.5) * samples) / pixels - 0.5, 0), samples - 1);
  const [u, v] = [position(x, alpha.width, image.width), position(y, alpha.height, image.height)];
  const [left, top] = [Math.floor(u), Math.floor(v)];
  return 255 * cubic((j) => cubic((i) => sample(left + i, top + j), u - left), v - top);
}

test('alpha of opaque pixels is the rounded value of its definition in double precision', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 90 }),
        fc.integer({ min: 1, max: 60 }),
        anyAlpha,
        (width, height, alpha) => {
          const image = paint(width, height, () => [10, 20, 30, 255]);
          const { out } = apply(image, alpha);
          for (let y = 0; y < height; y++) {
            for (let x = 0; x < width; x++) {
              const exact = alphaByDefinition(alpha, image, x, y);
              // Twice four products and three sums of floats of at most 9/8, in levels: below 0.001.
              if (Math.abs((pixel(out, x, y)[3] ?? 0) - exact) > 0.501) {
                throw new Error(`${pixel(out, x, y)[3]} for ${exact} at ${x}, ${y}`);
              }
            }
          }
        },
      ),
      { numRuns: 100 },
    ),
  );
});

/** The summary, determined by examining every pixel. */
function lookAt(image: Image): MatteSummary {
  let [left, top, right, bottom] = [image.width, image.height, -1, -1];
  let foregroundPixels = 0;
  let opaque = true;
  for (let y = 0; y < image.height; y++) {
    for (let x = 0; x < image.width; x++) {
      const alpha = pixel(image, x, y)[3] ?? 0;
      if (alpha >= 128) foregroundPixels++;
      if (alpha < 255) opaque = false;
      if (alpha === 0) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = y;
    }
  }
  const box =
    right < 0
      ? { left: 0, top: 0, width: 0, height: 0 }
      : { left, top, width: right - left + 1, height: bottom - top + 1 };
  return { box, foregroundPixels, opaque };
}

test('a matte is applied bit-equal to the scalar version for any size, stride, alpha and roi', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyCall(700, 40), ({ image, alpha, roi, hidden }) => {
        const scalar = apply(image, alpha, SCALAR, roi, hidden);
        return sameResult(apply(image, alpha, 1, roi, hidden), scalar);
      }),
      { numRuns: 200 },
    ),
  );
});

test('the summary of a matte agrees with every pixel', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyCall(600, 30), ({ image, alpha, roi }) => {
        const { out, summary } = apply(image, alpha, 1, roi);
        return paddingIntact(out) && JSON.stringify(summary) === JSON.stringify(lookAt(out));
      }),
      { numRuns: 100 },
    ),
  );
});

test('a matte gives the same bytes and summary for any number of threads', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyCall(40, 400), ({ image, alpha, roi, hidden }) => {
        const alone = apply(image, alpha, 0, roi, hidden);
        return [1, 3].every((threads) => sameResult(alone, apply(image, alpha, threads, roi, hidden)));
      }),
      { numRuns: 40 },
    ),
  );
});

test('a matte of 1 changes nothing, one of 0 clears everything', (t) => {
  const image = paint(301, 77, (x, y) => [x & 255, y, 9, 255]);
  const one = apply(image, flat(0.999));
  t.deepEqual(one.out.data, image.data);
  t.deepEqual(one.summary, { box: whole(image), foregroundPixels: 301 * 77, opaque: true });
  const zero = apply(image, flat(0.0015));
  t.true(zero.out.data.every((byte) => byte === 0));
  t.deepEqual(zero.summary, {
    box: { left: 0, top: 0, width: 0, height: 0 },
    foregroundPixels: 0,
    opaque: false,
  });
});

test("a flat matte stays flat and multiplies the image's alpha", (t) => {
  const image = paint(280, 9, (x) => [1, 2, 3, x % 256]);
  const { out } = apply(image, { p: new Float32Array(35 * 21).fill(0.4), width: 35, height: 21 });
  for (let x = 0; x < 280; x++) {
    const alpha = Math.round(((x % 256) * 102) / 255);
    t.deepEqual(pixel(out, x, 4), alpha === 0 ? [0, 0, 0, 0] : [1, 2, 3, alpha]);
  }
});

test('colours under alpha 0 are cleared or kept as requested, others never change', (t) => {
  const image = paint(64, 64, (x, y) => [x, y, 200, 255]);
  const edge: Alpha = { p: Float32Array.of(0, 0, 1, 1), width: 4, height: 1 };
  const cleared = apply(image, edge).out;
  const kept = apply(image, edge, 1, whole(image), 'keep').out;
  for (let x = 0; x < 64; x++) {
    const [r, g, b, alpha] = pixel(cleared, x, 30);
    t.deepEqual([r, g, b], alpha === 0 ? [0, 0, 0] : [x, 30, 200]);
    t.deepEqual(pixel(kept, x, 30), [x, 30, 200, alpha ?? -1]);
  }
});

test('a source pixel that was already transparent loses its colour under a matte of 1', (t) => {
  const image = paint(3, 1, (x) => [50, 60, 70, x === 1 ? 0 : 255]);
  t.deepEqual(pixel(apply(image, flat(1)).out, 1, 0), [0, 0, 0, 0]);
  t.deepEqual(pixel(apply(image, flat(1), 1, whole(image), 'keep').out, 1, 0), [50, 60, 70, 0]);
});

test('nothing outside the region of interest is foreground', (t) => {
  const image = paint(500, 40, () => [8, 8, 8, 255]);
  const roi = { left: 270, top: 7, width: 13, height: 20 };
  const { out, summary } = apply(image, flat(1), 1, roi);
  t.deepEqual(summary, { box: roi, foregroundPixels: 13 * 20, opaque: false });
  t.deepEqual(pixel(out, 269, 10), [0, 0, 0, 0]);
  t.deepEqual(pixel(out, 270, 10), [8, 8, 8, 255]);
});

test('interpolated alpha stays within the range of its neighbouring samples', (t) => {
  const wrong: string[] = [];
  const next = random(21);
  const p = Float32Array.from({ length: 16 }, () => (next() < 0.5 ? 0.3 : 0.7));
  const { out } = apply(
    paint(640, 640, () => [0, 0, 0, 255]),
    { p, width: 4, height: 4 },
  );
  for (let y = 0; y < 640; y += 3) {
    for (let x = 0; x < 640; x++) {
      const alpha = pixel(out, x, y)[3] ?? 0;
      if (alpha < 76 || alpha > 179) wrong.push(`${alpha} at ${x}, ${y}`);
    }
  }
  t.deepEqual(wrong.slice(0, 5), []);
});

test('the spline is closer to a smooth matte than linear interpolation', (t) => {
  // Soft discs and ramps, averaged down 6 times, then enlarged.
  const [width, height, by] = [480, 360, 6];
  const truth = (x: number, y: number) => {
    const disc = 1 / (1 + Math.exp((Math.hypot(x - 200, y - 180) - 110) / 6));
    const strand = Math.exp(-(((x - 380 - 20 * Math.sin(y / 40)) / 7) ** 2));
    return Math.max(disc, strand);
  };
  const [pWidth, pHeight] = [width / by, height / by];
  const p = Float32Array.from({ length: pWidth * pHeight }, (_, i) => {
    let sum = 0;
    for (let k = 0; k < by * by; k++) {
      sum += truth((i % pWidth) * by + (k % by), Math.floor(i / pWidth) * by + Math.floor(k / by));
    }
    return sum / (by * by);
  });
  const sample = (x: number, y: number) =>
    p[Math.min(pHeight - 1, Math.max(0, y)) * pWidth + Math.min(pWidth - 1, Math.max(0, x))] ?? 0;
  const linear = (x: number, y: number) => {
    const [u, v] = [(x + 0.5) / by - 0.5, (y + 0.5) / by - 0.5];
    const [i, j] = [Math.floor(u), Math.floor(v)];
    const row = (k: number) => sample(i, k) * (1 - (u - i)) + sample(i + 1, k) * (u - i);
    return row(j) * (1 - (v - j)) + row(j + 1) * (v - j);
  };
  const { out } = apply(
    paint(width, height, () => [0, 0, 0, 255]),
    { p, width: pWidth, height: pHeight },
  );
  let [spline, bilinear] = [0, 0];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      spline += ((pixel(out, x, y)[3] ?? 0) / 255 - truth(x, y)) ** 2;
      bilinear += (Math.round(linear(x, y) * 255) / 255 - truth(x, y)) ** 2;
    }
  }
  t.log(`squared error ${(spline / bilinear).toFixed(3)} of linear interpolation's`);
  t.true(spline < 0.7 * bilinear);
});
