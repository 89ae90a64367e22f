import test from 'ava';
import fc from 'fast-check';
import type { Box } from '../../src/engine/types.ts';
import { loadKernels, SCALAR } from './kernelsAddon.ts';
import { random, whole } from './kernelsImages.ts';

const kernels = loadKernels();

interface Alpha {
  readonly p: Float32Array;
  readonly width: number;
  readonly height: number;
}

const draw = (width: number, height: number, at: (x: number, y: number) => number): Alpha => ({
  p: Float32Array.from({ length: width * height }, (_, i) => at(i % width, Math.floor(i / width))),
  width,
  height,
});

function filter(alpha: Alpha, threads = 1, area: Box = whole(alpha)) {
  const p = alpha.p.slice();
  return { p, ...kernels.filterComponents(p, alpha.width, area, threads) };
}

/** Number of samples of two maps that differ by more than is rounded away at the ends of the range. */
const apart = (a: Float32Array, b: Float32Array) =>
  a.reduce((n, value, i) => n + (Math.abs(value - (b[i] ?? Number.NaN)) <= 0.02 ? 0 : 1), 0);

const at = ({ width }: Alpha, p: Float32Array, x: number, y: number) => p[y * width + x] ?? -1;

/** Flat areas, noise, soft blobs with specks and holes, and single rows and columns. */
const anyAlpha = (side: number): fc.Arbitrary<Alpha> =>
  fc
    .record({
      width: fc.integer({ min: 1, max: side }),
      height: fc.integer({ min: 1, max: side }),
      kind: fc.constantFrom('empty', 'opaque', 'noise', 'levels', 'blobs'),
      seed: fc.nat(),
    })
    .map(({ width, height, kind, seed }) => {
      const next = random(seed);
      const blobs = Array.from({ length: 5 }, () => ({
        x: next() * width,
        y: next() * height,
        radius: (next() * Math.max(width, height)) / 4,
        high: next(),
      }));
      return draw(width, height, (x, y) => {
        if (kind === 'empty') return 0;
        if (kind === 'opaque') return 1;
        if (kind === 'noise') return next();
        if (kind === 'levels') return [0, 0, 0.05, 0.3, 0.8, 1][Math.floor(next() * 6)] ?? 0;
        const covers = blobs.map(
          (blob) => blob.high * Math.min(1, Math.max(0, blob.radius - Math.hypot(x - blob.x, y - blob.y))),
        );
        return next() < 0.02 ? next() : Math.max(...covers);
      });
    });

const anyArea = ({ width, height }: Alpha): fc.Arbitrary<Box> =>
  fc
    .record({ x: fc.nat(width - 1), y: fc.nat(height - 1), toX: fc.nat(width - 1), toY: fc.nat(height - 1) })
    .map(({ x, y, toX, toY }) => ({
      left: Math.min(x, toX),
      top: Math.min(y, toY),
      width: Math.abs(x - toX) + 1,
      height: Math.abs(y - toY) + 1,
    }));

const anyCall = (side: number) =>
  anyAlpha(side).chain((alpha) =>
    fc.record({
      alpha: fc.constant(alpha),
      area: fc.oneof(fc.constant(whole(alpha)), anyArea(alpha)),
    }),
  );

test('components equal those of a flood fill, for any map, area, range and number of threads', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(
        anyCall(150),
        fc.constantFrom<readonly [number, number]>([0.02, 1], [0, 0.98], [0.3, 0.7]),
        fc.constantFrom<4 | 8>(4, 8),
        ({ alpha: { p, width }, area }, [least, most], neighbours) => {
          const found = [SCALAR, 0, 3].map((threads) =>
            JSON.stringify(kernels.findComponents(p, width, area, least, most, neighbours, threads)),
          );
          return found.every((each) => each === found[0]);
        },
      ),
      { numRuns: 150 },
    ),
  );
});

test('corners join components with eight neighbours and separate those with four', (t) => {
  const { p, width } = draw(4, 4, (x, y) => Number((x + y) % 2 === 0));
  const components = (neighbours: 4 | 8) =>
    kernels.findComponents(p, width, whole({ width, height: 4 }), 0.5, 1, neighbours, 1).components;
  t.is(components(8).length, 1);
  t.is(components(4).length, 8);
  t.deepEqual(components(8)[0], { area: 8, foreground: 8, low: 1, high: 1 });
});

test('the component filter is bit-equal to the scalar version for any map, area and number of threads', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyCall(70), ({ alpha, area }) => {
        const scalar = filter(alpha, SCALAR, area);
        return [0, 1, 3].every((threads) => {
          const { p, ...summary } = filter(alpha, threads, area);
          return (
            Buffer.from(p.buffer).equals(Buffer.from(scalar.p.buffer)) &&
            summary.removed === scalar.removed &&
            summary.filled === scalar.filled
          );
        });
      }),
      { numRuns: 120 },
    ),
  );
});

test('nothing outside the area changes, and filtering twice equals filtering once', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyCall(90), ({ alpha, area }) => {
        const { p } = filter(alpha, 1, area);
        const outside = alpha.p.every((value, i) => {
          const [x, y] = [i % alpha.width, Math.floor(i / alpha.width)];
          const inside =
            x >= area.left && x < area.left + area.width && y >= area.top && y < area.top + area.height;
          return inside || p[i] === value;
        });
        const again = filter({ ...alpha, p }, 1, area);
        return outside && again.removed === 0;
      }),
      { numRuns: 100 },
    ),
  );
});

const SIDE = 512;
const disc = (x: number, y: number, radius: number, high = 1) => {
  const cover = (px: number, py: number) =>
    high * Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(px - x, py - y)));
  return cover;
};
const scene = (...covers: readonly ((x: number, y: number) => number)[]) =>
  draw(SIDE, SIDE, (x, y) => Math.max(...covers.map((cover) => cover(x, y))));

const subject = disc(200, 260, 120);

test('a single pixel, an empty and a full map are unchanged', (t) => {
  for (const value of [0, 0.01, 0.4, 0.7, 1]) {
    const { p, removed } = filter({ p: Float32Array.of(value), width: 1, height: 1 });
    t.is(p[0], Math.fround(value));
    t.is(removed, 0);
  }
  for (const value of [0, 1]) {
    const alpha = draw(97, 33, () => value);
    t.is(apart(filter(alpha).p, alpha.p), 0);
  }
});

test('haze, which never reaches a tenth, is removed anywhere', (t) => {
  const near = filter(scene(subject, disc(335, 260, 8, 0.08)));
  const far = filter(scene(subject, disc(470, 40, 30, 0.09)));
  const clear = scene(subject);
  t.is(apart(near.p, clear.p), 0);
  t.is(near.removed, 1);
  t.is(apart(far.p, clear.p), 0);
  t.is(far.removed, 1);
});

test('a single ambiguous pixel in a corner does not extend the box', (t) => {
  const dirty = scene(subject, (x, y) => (x === SIDE - 1 && y === 0 ? 7 / 255 : 0));
  t.is(apart(filter(dirty).p, scene(subject).p), 0);
});

test('ambiguous components far from the subject are removed, whatever their size, and so are specks', (t) => {
  const clear = scene(subject).p;
  t.is(apart(filter(scene(subject, disc(440, 260, 60, 0.45))).p, clear), 0);
  t.is(apart(filter(scene(subject, disc(450, 30, 1.4))).p, clear), 0);
  // A small foreground component is kept near the subject and removed far from it.
  const small = disc(480, 260, 7);
  t.is(apart(filter(scene(subject, small)).p, clear), 0);
  const beside = scene(subject, disc(345, 260, 7));
  t.is(apart(filter(beside).p, beside.p), 0);
});

test('several subjects are kept: two separate people, a pair of shoes, a ball beside a child', (t) => {
  const two = scene(disc(90, 250, 70), disc(430, 250, 55, 0.8));
  t.is(apart(filter(two).p, two.p), 0);
  const ball = scene(subject, disc(470, 400, 14));
  t.is(apart(filter(ball).p, ball.p), 0);
});

test('a wide haze with a confident spot is no subject', (t) => {
  const keyboard = scene(subject, disc(450, 100, 45, 0.3), disc(450, 80, 2));
  t.is(apart(filter(keyboard).p, scene(subject).p), 0);
});

test('a detached wisp of hair is kept near the head and removed far from it', (t) => {
  const strand = (from: number) => (x: number, y: number) =>
    x >= from && x < from + 25 && y === 100 + Math.floor((x - from) / 3) ? 0.25 : 0;
  const head = disc(200, 200, 120);
  const detached = scene(head, strand(290));
  t.is(at(detached, detached.p, 292, 100), 0.25);
  t.is(kernels.findComponents(detached.p, SIDE, whole(detached), 0.02, 1, 8, 1).components.length, 2);
  t.is(apart(filter(detached).p, detached.p), 0);
  t.is(apart(filter(scene(head, strand(440))).p, scene(head).p), 0);
});

test('a shallow hole is filled; openings, wide and deep holes are kept', (t) => {
  const minus = (hole: (x: number, y: number) => number) => (x: number, y: number) =>
    subject(x, y) * (1 - hole(x, y));
  const shallow = filter(scene(minus(disc(200, 260, 9, 0.08))));
  t.is(apart(shallow.p, scene(subject).p), 0);
  t.is(shallow.filled, 1);
  for (const hole of [disc(200, 260, 1.2), disc(200, 260, 9, 0.15), disc(200, 260, 40, 0.08)]) {
    const alpha = scene(minus(hole));
    const filtered = filter(alpha);
    t.is(apart(filtered.p, alpha.p), 0);
    t.is(filtered.filled, 0);
  }
});

test('nothing changes if no network pixel reaches one half', (t) => {
  const alpha = scene(disc(200, 200, 50, 0.49), disc(400, 400, 3, 0.05));
  const { p, removed, filled } = filter(alpha);
  t.deepEqual([apart(p, alpha.p), removed, filled], [0, 0, 0]);
});

test('only the area counts: a small subject alone in it is the subject', (t) => {
  const alpha = scene(subject, disc(480, 260, 7), disc(500, 500, 5, 0.09));
  const area = { left: 400, top: 100, width: 112, height: 412 };
  const { p, removed } = filter(alpha, 1, area);
  t.is(removed, 1);
  t.is(apart(p, scene(subject, disc(480, 260, 7)).p), 0);
});

test('the network pixels of a roi contain every sample that its pixels need', (t) => {
  t.deepEqual(kernels.networkArea({ left: 0, top: 0, width: 4000, height: 3000 }, 4000, 3000, 1024, 1024), {
    left: 0,
    top: 0,
    width: 1024,
    height: 1024,
  });
  t.notThrows(() =>
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3000 }),
        fc.integer({ min: 1, max: 1024 }),
        fc.nat(),
        fc.nat(),
        (pixels, samples, a, b) => {
          const left = a % pixels;
          const width = 1 + (b % (pixels - left));
          const roi = { left, top: 0, width, height: 1 };
          const box = kernels.networkArea(roi, pixels, 1, samples, 1);
          // Samples of a pixel, positioned as in cubic_taps.cc.
          const needed = [left, left + width - 1].flatMap((x) => {
            const base = Math.floor(Math.min(samples - 1, Math.max(0, ((x + 0.5) * samples) / pixels - 0.5)));
            return [Math.max(0, base - 1), Math.min(samples - 1, base + 2)];
          });
          return (
            box.left >= 0 &&
            box.left + box.width <= samples &&
            needed.every((sample) => sample >= box.left && sample < box.left + box.width)
          );
        },
      ),
    ),
  );
});

/** As native/matte/uncertainty.h defines it, for maps whose blocks are single network pixels. */
function uncertaintyOf(p: ArrayLike<number>): number {
  let [halfBelief, belief] = [0, 0];
  for (let i = 0; i < p.length; i++) {
    const value = Math.floor(Math.fround((p[i] ?? 0) * 2047) + 0.5) / 2047;
    halfBelief += value * (1 - value);
    belief += value;
  }
  return belief > 0 ? halfBelief / belief : 1;
}

const uncertain = (values: readonly number[], width = values.length, threads = 1) =>
  kernels.uncertainty(
    Float32Array.from(values),
    width,
    whole({ width, height: values.length / width }),
    threads,
  );

test('uncertainty is the mean of p (1 - p) over the mean of p, with any number of threads', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyCall(150), ({ alpha: { p, width, height } }) => {
        const values = Array.from(p, (value) => Math.min(1, Math.max(0, value || 0)));
        const expected = uncertaintyOf(Float32Array.from(values));
        const found = [0, 1, 3].map((threads) => uncertain(values, width, threads));
        return (
          values.length === width * height &&
          // Blocks of such maps are single network pixels.
          found.every(
            ({ whole: all, patches }) =>
              all === patches && all === found[0]?.whole && Math.abs(all - expected) < 1e-6,
          )
        );
      }),
      { numRuns: 60 },
    ),
  );
  t.deepEqual(uncertain([0, 0, 0]), { whole: 1, patches: 1, secondLook: true });
  t.deepEqual(uncertain([0, 1, 1]), { whole: 0, patches: 0, secondLook: false });
  t.true(Math.abs(uncertain([0.5, 0.5]).whole - 0.5) < 0.001);
});

test('half-believed patches need a second look, and what is narrower than a block does not', (t) => {
  const side = 1024;
  const map = (of: (x: number, y: number) => number) =>
    Array.from({ length: side * side }, (_, i) => of(i % side, Math.floor(i / side)));
  const inside = (x: number) => x >= 256 && x < 768;
  // Lines of three network pixels, one in eight half believed: a mesh.
  const mesh = uncertain(
    map((x) => (inside(x) ? (x % 8 < 2 ? 0.5 : 1) : 0)),
    side,
  );
  const patch = uncertain(
    map((x, y) => (inside(x) ? (y < 256 ? 0.5 : 1) : 0)),
    side,
  );
  t.true(mesh.patches === 0 && Math.abs(mesh.whole - 0.0625 / 0.875) < 0.001, JSON.stringify(mesh));
  t.true(Math.abs(patch.patches - 0.0625 / 0.875) < 0.001 && patch.secondLook, JSON.stringify(patch));
  // Patches of a mesh that is unsure too: most of the doubt is narrow.
  const both = uncertain(
    map((x, y) => (inside(x) ? (x % 8 < 2 || y < 192 ? 0.5 : 1) : 0)),
    side,
  );
  t.true(both.patches > 0.05 && both.whole > 2 * both.patches && !both.secondLook, JSON.stringify(both));
});

test('a second answer has to be the surer, the surer the first one is', (t) => {
  const of = (value: number) => ({ whole: value, patches: value });
  for (const [first, limit] of [
    [0.4, 0.4],
    [0.15, 0.15],
    [0.1, 0.07],
    [0.06, 0.0252],
  ] as const) {
    t.true(kernels.isSurer(of(limit - 1e-6), of(first)), `${first}`);
    t.false(kernels.isSurer(of(limit + 1e-6), of(first)), `${first}`);
  }
});
