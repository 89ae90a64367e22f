import test from 'ava';
import fc from 'fast-check';
import { loadKernels, type NativeMask, SCALAR } from './kernelsAddon.ts';
import { random, whole } from './kernelsImages.ts';

const kernels = loadKernels();

const side = 64;
const square = { width: side, height: side };

const maskOf = (width: number, height: number, at: (x: number, y: number) => number): NativeMask => ({
  data: Uint8Array.from({ length: width * height }, (_, i) => at(i % width, Math.floor(i / width))),
  width,
  height,
});

const planeOf = (at: (x: number, y: number) => number): Float32Array =>
  Float32Array.from({ length: side * side }, (_, i) => at(i % side, Math.floor(i / side)));

function constrain(p: Float32Array, mask: NativeMask): Float32Array {
  const result = p.slice();
  kernels.constrain(result, side, mask, whole(square), square, 2);
  return result;
}

const at = (p: Float32Array, x: number, y = side / 2) => p[y * side + x] ?? Number.NaN;

const left = (x: number) => (x < side / 2 ? 255 : 0);

test('what is well inside the mask becomes foreground, what is well outside background, whatever the network says', (t) => {
  for (const p of [planeOf(() => 0), planeOf(() => 1), planeOf((x, y) => (x * 7 + y * 13) / 2000)]) {
    const result = constrain(p, maskOf(side, side, left));
    t.is(at(result, 5), 1);
    t.is(at(result, 26), 1);
    t.is(at(result, 37), 0);
    t.is(at(result, 60), 0);
  }
});

test('beside the edge of the mask the network decides, where it has an edge there too', (t) => {
  // Soft: 1 at 30, 0 at 34.
  const network = planeOf((x) => Math.min(1, Math.max(0, (34 - x) / 4)));
  const result = constrain(network, maskOf(side, side, left));
  for (let x = 30; x < 35; x++) t.is(at(result, x), at(network, x), `at ${x}`);
});

test('where the network has no edge, the mask draws it, softly', (t) => {
  for (const level of [0, 1]) {
    const result = constrain(
      planeOf(() => level),
      maskOf(side, side, left),
    );
    t.is(at(result, 28), 1);
    t.is(at(result, 36), 0);
    t.true(at(result, 31) > 0.5 && at(result, 31) < 1, String(at(result, 31)));
    t.true(at(result, 32) > 0 && at(result, 32) < 0.5, String(at(result, 32)));
  }
});

test('what is undecided is left to the network', (t) => {
  const network = planeOf((x, y) => ((x * 31 + y * 17) % 101) / 100);
  t.deepEqual(
    constrain(
      network,
      maskOf(8, 8, () => 128),
    ),
    network,
  );
});

test('what was marked is not removed as a component; what was not stays removed', (t) => {
  const constrained = planeOf((x) => (x < 4 || x > 50 ? 1 : 0));
  const filtered = planeOf(() => 0);
  kernels.restoreMarked(
    filtered,
    side,
    constrained,
    maskOf(side, side, (x) => (x < 4 ? 255 : 128)),
    1,
  );
  t.is(at(filtered, 2), 1);
  t.is(at(filtered, 60), 0);
});

test('the view is the marked part with a margin, and the whole image where that is most of it', (t) => {
  const spot = maskOf(100, 50, (x, y) => (x >= 20 && x < 40 && y >= 10 && y < 20 ? 128 : 0));
  // 40 x 20 pixels of the image, with 5 around them.
  t.deepEqual(kernels.maskView(spot, 200, 100), { left: 35, top: 15, width: 50, height: 30 });
  const image = { left: 0, top: 0, width: 200, height: 100 };
  for (const value of [0, 128, 255])
    t.deepEqual(
      kernels.maskView(
        maskOf(3, 2, () => value),
        200,
        100,
      ),
      image,
    );
  const corner = maskOf(10, 10, (x, y) => (x === 9 && y === 9 ? 255 : 0));
  t.deepEqual(kernels.maskView(corner, 100, 100), { left: 88, top: 88, width: 12, height: 12 });
});

test('a mask has the view of the first where it lies well inside it and is not too small in it', (t) => {
  const spot = (x: number, y: number, width: number, height: number) =>
    maskOf(100, 100, (column, row) =>
      column >= x && column < x + width && row >= y && row < y + height ? 255 : 0,
    );
  const viewOf = (first: NativeMask, mask: NativeMask) => kernels.sharedView(first, mask, 1000, 1000, 10);
  const first = spot(30, 30, 32, 32);
  const view = { left: 200, top: 200, width: 500, height: 500 };
  t.deepEqual(viewOf(first, first), view);
  for (const inside of [spot(32, 30, 34, 30), spot(22, 22, 20, 20), spot(44, 35, 12, 30)])
    t.deepEqual(viewOf(first, inside), view);
  // Not 1/16 of its side from the edge; outside; a quarter of the view is more than its own.
  for (const other of [spot(20, 30, 30, 30), spot(32, 30, 36, 30), spot(75, 75, 10, 10), spot(44, 44, 4, 4)])
    t.deepEqual(viewOf(first, other), viewOf(other, other));
  // Haze anywhere else does not count.
  const hazy = maskOf(100, 100, (column, row) =>
    column >= 32 && column < 66 && row >= 30 && row < 60 ? 255 : row === 99 ? 100 : 0,
  );
  t.deepEqual(viewOf(first, hazy), view);
  // What ends at the image's edge needs no room there.
  const corner = spot(0, 0, 30, 30);
  t.deepEqual(viewOf(corner, spot(0, 0, 31, 20)), viewOf(corner, corner));
  const image = { left: 0, top: 0, width: 1000, height: 1000 };
  t.deepEqual(viewOf(first, spot(0, 0, 0, 0)), image);
  t.deepEqual(viewOf(spot(0, 0, 0, 0), spot(30, 30, 60, 60)), image);
});

const anyCall = fc
  .record({
    width: fc.integer({ min: 1, max: 70 }),
    height: fc.integer({ min: 1, max: 600 }),
    maskWidth: fc.integer({ min: 1, max: 90 }),
    maskHeight: fc.integer({ min: 1, max: 90 }),
    seed: fc.nat(),
    kind: fc.constantFrom('noise', 'halves', 'levels'),
    part: fc.boolean(),
  })
  .map(({ width, height, maskWidth, maskHeight, seed, kind, part }) => {
    const next = random(seed);
    const image = { width: 120, height: 90 };
    const mask = maskOf(maskWidth, maskHeight, (x) => {
      if (kind === 'halves') return x < maskWidth / 2 ? 255 : 0;
      return kind === 'noise'
        ? Math.floor(next() * 256)
        : ([0, 12, 13, 242, 243, 255][Math.floor(next() * 6)] ?? 0);
    });
    return {
      p: Float32Array.from({ length: width * height }, () =>
        kind === 'levels' ? Math.round(next()) : next(),
      ),
      width,
      mask,
      view: part ? { left: 7, top: 11, width: 50, height: 60 } : whole(image),
      image,
    };
  });

test('the kernel agrees with its definition, for any sizes and number of threads', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyCall, ({ p, width, mask, view, image }) => {
        const scalar = p.slice();
        kernels.constrain(scalar, width, mask, view, image, SCALAR);
        for (const threads of [0, 3]) {
          const fast = p.slice();
          kernels.constrain(fast, width, mask, view, image, threads);
          if (fast.some((value, i) => !(Math.abs(value - (scalar[i] ?? Number.NaN)) <= 1e-4))) return false;
        }
        return true;
      }),
      { numRuns: 60 },
    ),
  );
});
