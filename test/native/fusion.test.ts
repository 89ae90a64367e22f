import test from 'ava';
import fc from 'fast-check';
import { loadKernels, SCALAR } from './kernelsAddon.ts';
import { random } from './kernelsImages.ts';

const kernels = loadKernels();

interface Outputs {
  readonly first: Float32Array;
  readonly second: Float32Array;
  readonly width: number;
  readonly height: number;
}

function fuse({ first, second, width, height }: Outputs, threads = 1) {
  const fused = first.slice();
  return { fused, ...kernels.fuseOutputs(fused, second, width, height, threads) };
}

const draw = (
  width: number,
  height: number,
  at: (x: number, y: number) => readonly [number, number],
): Outputs => {
  const values = Array.from({ length: width * height }, (_, i) => at(i % width, Math.floor(i / width)));
  return {
    first: Float32Array.from(values, ([first]) => first),
    second: Float32Array.from(values, ([, second]) => second),
    width,
    height,
  };
};

/**
 * docs/matting.md, "Two networks", in double precision, by other means than the kernel's: distances to what does not
 * belong instead of windows, and labels that spread until nothing changes.
 */
function oracle({ first, second, width, height }: Outputs) {
  const radius = Math.max(1, Math.floor(Math.max(width, height) / 128));
  const reach = radius + Math.ceil(radius / 2);
  const fused = Float64Array.from(first);
  let [regions, replaced] = [0, 0];
  const distance = (i: number, j: number) =>
    Math.max(Math.abs((i % width) - (j % width)), Math.abs(Math.floor(i / width) - Math.floor(j / width)));
  for (const sign of [1, -1]) {
    const differs = Array.from(
      first,
      (p, i) => Math.fround(sign * ((second[i] ?? 0) - p)) > Math.fround(0.2),
    );
    const others = [...differs.keys()].filter((i) => !differs[i]);
    const cores = [...differs.keys()].filter(
      (i) => differs[i] && others.every((j) => distance(i, j) > radius),
    );
    const labels = new Map<number, number>();
    for (const [i, is] of differs.entries()) {
      if (is && cores.some((core) => distance(i, core) <= reach)) labels.set(i, i);
    }
    for (let changed = true; changed; ) {
      changed = false;
      for (const [i, label] of labels) {
        for (const [j, other] of labels) {
          if (distance(i, j) !== 1 || other >= label || other >= (labels.get(i) ?? 0)) continue;
          labels.set(i, other);
          changed = true;
        }
      }
    }
    for (const label of new Set(labels.values())) {
      const region = [...labels.keys()].filter((i) => labels.get(i) === label);
      const confidence = (output: Float32Array) =>
        region.reduce((sum, i) => sum + Math.abs(2 * (output[i] ?? 0) - 1), 0) / region.length;
      regions++;
      if (confidence(second) <= confidence(first) + 0.3) continue;
      replaced++;
      for (const i of region) fused[i] = second[i] ?? 0;
    }
  }
  return { fused: Float32Array.from(fused), regions, replaced };
}

/** Blobs of which each output has its own opinion, over noise that is no region. */
const anyOutputs = (side: number): fc.Arbitrary<Outputs> =>
  fc
    .record({
      width: fc.integer({ min: 1, max: side }),
      height: fc.integer({ min: 1, max: side }),
      seed: fc.nat(),
    })
    .map(({ width, height, seed }) => {
      const next = random(seed);
      const blobs = Array.from({ length: 4 }, () => ({
        x: next() * width,
        y: next() * height,
        radius: 1 + (next() * Math.max(width, height)) / 3,
        first: next(),
        second: next(),
      }));
      return draw(width, height, (x, y) => {
        const over = blobs.find((blob) => Math.hypot(x - blob.x, y - blob.y) < blob.radius);
        const noise = next() < 0.02 ? next() : 0;
        return [Math.max(over?.first ?? 0, noise), over?.second ?? 0];
      });
    });

test('every region is given as the definition says', (t) => {
  fc.assert(
    fc.property(anyOutputs(24), (outputs) => {
      t.deepEqual(fuse(outputs), oracle(outputs));
      t.deepEqual(fuse(outputs, SCALAR), oracle(outputs));
    }),
    { numRuns: 60 },
  );
});

test('the same bytes as the scalar version for any number of threads', (t) => {
  fc.assert(
    fc.property(anyOutputs(300), fc.integer({ min: 0, max: 4 }), (outputs, threads) => {
      t.deepEqual(fuse(outputs, threads), fuse(outputs, SCALAR));
    }),
    { numRuns: 12 },
  );
});

const side = 256;
const square = (x: number, y: number, from: number, to: number) => x >= from && x < to && y >= from && y < to;

test('an edge that is only drawn differently keeps the first output', (t) => {
  // The second output's square is wider by twice the radius of an edge on all sides.
  const outputs = draw(side, side, (x, y) => [
    square(x, y, 60, 180) ? 0.9 : 0.1,
    square(x, y, 56, 184) ? 1 : 0,
  ]);
  const { fused, regions } = fuse(outputs);
  t.is(regions, 0);
  t.deepEqual(fused, outputs.first);
});

test('a part that only one of the two is sure of is taken whole from that one, and nothing else', (t) => {
  const outputs = draw(side, side, (x, y) => {
    if (square(x, y, 20, 60)) return [0.6, 1]; // foreground by the second
    if (square(x, y, 100, 140)) return [0.4, 0]; // background by the second
    if (square(x, y, 180, 220)) return [1, 0.4]; // the first is sure
    return [0.02, 0];
  });
  const { fused, regions, replaced } = fuse(outputs);
  t.deepEqual([regions, replaced], [3, 2]);
  const wanted = draw(side, side, (x, y) => {
    if (square(x, y, 20, 60)) return [1, 0];
    if (square(x, y, 100, 140)) return [0, 0];
    return [square(x, y, 180, 220) ? 1 : 0.02, 0];
  });
  t.deepEqual(fused, wanted.first);
});

test('the second output has to be surer by the margin', (t) => {
  const outputs = draw(side, side, (x, y) => {
    if (square(x, y, 20, 60)) return [0.4, 0.745]; // confidence 0.20 and 0.49
    if (square(x, y, 100, 140)) return [0.4, 0.755]; // 0.20 and 0.51
    return [0.02, 0];
  });
  const { fused, regions, replaced } = fuse(outputs);
  t.deepEqual([regions, replaced], [2, 1]);
  t.deepEqual([fused[40 * side + 40], fused[120 * side + 120]], [0.4, 0.755].map(Math.fround));
});
