import test from 'ava';
import fc from 'fast-check';
import { type Image, loadKernels } from './kernelsAddon.ts';
import { anyImage, copy, difference, packed, paint, random } from './kernelsImages.ts';

const kernels = loadKernels();

/** Reduces a copy; the packed result. */
function reduce(image: Image, width: number, height: number, threads = 1): Uint8Array {
  const work = copy(image);
  kernels.reduceInPlace(work, width, height, threads);
  return work.data.subarray(0, width * height * 4);
}

const anyReduction = (maxWidth?: number, maxHeight?: number) =>
  anyImage(maxWidth, maxHeight).chain((image) =>
    fc.record({
      image: fc.constant(image),
      width: fc.integer({ min: 1, max: image.width }),
      height: fc.integer({ min: 1, max: image.height }),
    }),
  );

test('reduction in place is within 1 of its definition for any size, stride and alpha', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(
        anyReduction(),
        ({ image, width, height }) =>
          difference(reduce(image, width, height), kernels.reduceScalar(image, width, height)) <= 1,
      ),
      { numRuns: 150 },
    ),
  );
});

test('reduction never reads what it has overwritten: tall images, hardly smaller', (t) => {
  const next = random(3);
  const byte = () => next() * 256;
  const image = paint(37, 900, () => [byte(), byte(), byte(), 255]);
  for (const [width, height] of [
    [37, 899],
    [36, 900],
    [36, 899],
    [1, 899],
    [37, 131],
  ] as const) {
    const worst = difference(reduce(image, width, height, 3), kernels.reduceScalar(image, width, height));
    t.true(worst <= 1, `${width}x${height}: ${worst}`);
  }
});

test('reduction has the same bytes for any number of threads', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyReduction(60, 400), ({ image, width, height }) => {
        const alone = reduce(image, width, height, 0);
        return [1, 3].every((threads) => Buffer.from(alone).equals(reduce(image, width, height, threads)));
      }),
      { numRuns: 40 },
    ),
  );
});

test('reduction keeps a flat colour exactly, opaque or not', (t) => {
  const wrong: string[] = [];
  for (const alpha of [255, 128, 1]) {
    const image = paint(613, 407, () => [201, 3, 255, alpha]);
    for (const [width, height] of [
      [612, 406],
      [200, 133],
      [1, 1],
    ] as const) {
      const out = reduce(image, width, height);
      for (let i = 0; i < out.length; i += 4) {
        if (Buffer.compare(out.subarray(i, i + 4), Buffer.from([201, 3, 255, alpha])) !== 0) {
          wrong.push(`${out.subarray(i, i + 4)} at ${i}`);
        }
      }
    }
  }
  t.deepEqual(wrong.slice(0, 5), []);
});

test('reduction to the same size drops row padding and nothing else, hidden colours included', (t) => {
  const image = paint(7, 5, (x, y) => [x, y, 99, x === y ? 0 : 200], 33);
  t.deepEqual(reduce(image, 7, 5), packed(image));
});

test('reduction is Lanczos with three lobes widened by the scale', (t) => {
  const next = random(9);
  const line = Array.from({ length: 101 }, () => Math.floor(next() * 256));
  const image = paint(101, 1, (x) => [line[x] ?? 0, 0, 0, 255]);
  const width = 40;
  const out = reduce(image, width, 1);
  const sinc = (x: number) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
  for (let i = 0; i < width; i++) {
    let sum = 0;
    let weights = 0;
    line.forEach((value, j) => {
      const x = (j + 0.5) / (101 / width) - (i + 0.5);
      const weight = Math.abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
      sum += weight * value;
      weights += weight;
    });
    const expected = Math.min(255, Math.max(0, sum / weights));
    t.true(Math.abs((out[i * 4] ?? 0) - expected) <= 0.5001, `${i}: ${out[i * 4]} for ${expected}`);
  }
});

test('reduction keeps hidden colours out of visible ones', (t) => {
  // Left half opaque blue, right half transparent with red behind it.
  const image = paint(200, 8, (x) => (x < 100 ? [0, 0, 255, 255] : [255, 0, 0, 0]));
  const out = reduce(image, 67, 3);
  for (let i = 0; i < out.length; i += 4) {
    const [r, g, b, a] = out.subarray(i, i + 4);
    if (a === 0) t.deepEqual([r, g, b], [0, 0, 0]);
    else if (r !== 0 || g !== 0 || b !== 255) t.fail(`${r} ${g} ${b} at alpha ${a}`);
  }
});
