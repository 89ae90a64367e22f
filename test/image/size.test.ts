import test from 'ava';
import fc from 'fast-check';
import { decodeSize, resultSize, sizeLimits } from '../../src/image/size.ts';

const side = fc.integer({ min: 1, max: 50_000 });
const source = fc.record({ width: side, height: side }).filter(({ width, height }) => width * height <= 50e6);
const limit = fc.constantFrom(...Object.values(sizeLimits));
const network = { width: 1024, height: 1024 };

for (const [width, height, result] of [
  [2500, 1600, '625x400'],
  [6000, 4000, '612x408'],
  [4000, 3000, '577x433'],
  [3000, 4000, '433x577'],
  [1920, 1080, '666x375'],
  [3000, 3000, '500x500'],
  [501, 500, '500x499'],
  [625, 400, '625x400'],
  [50_000_000, 1, '3535533x1'],
] as const) {
  test(`a preview of ${width}x${height} has ${result} pixels`, (t) => {
    const { width: w, height: h } = resultSize({ width, height }, sizeLimits.preview);
    t.is(`${w}x${h}`, result);
  });
}

test('a result is never enlarged and, except for sides of 1, never above its limit', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(source, limit, (from, most) => {
        const to = resultSize(from, most);
        if (from.width * from.height <= most) return to.width === from.width && to.height === from.height;
        const thin = to.width === 1 || to.height === 1;
        return (
          to.width >= 1 &&
          to.height >= 1 &&
          to.width <= from.width &&
          to.height <= from.height &&
          (thin || to.width * to.height <= most)
        );
      }),
    ),
  );
});

test('sides are exactly the floor, without rounding errors', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(source, limit, (from, most) => {
        if (from.width * from.height <= most) return true;
        const to = resultSize(from, most);
        const exact = (result: number, own: number, other: number) => {
          const [r, l] = [BigInt(result), BigInt(most) * BigInt(own)];
          return (result === 1 || r * r * BigInt(other) <= l) && (r + 1n) * (r + 1n) * BigInt(other) > l;
        };
        return exact(to.width, from.width, from.height) && exact(to.height, from.height, from.width);
      }),
      { numRuns: 1000 },
    ),
  );
});

test('decoding provides what result and network need, and no more than the source has', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(source, limit, (from, most) => {
        const result = resultSize(from, most);
        const { width, height } = decodeSize(from, result, network);
        return (
          width <= from.width &&
          height <= from.height &&
          width >= result.width &&
          height >= result.height &&
          width >= Math.min(from.width, network.width) &&
          height >= Math.min(from.height, network.height)
        );
      }),
      { numRuns: 1000 },
    ),
  );
});

test('a 12 MP preview is decoded at the network input, a 12 MP medium at its own size, full size untouched', (t) => {
  const from = { width: 4000, height: 3000 };
  const at = (most: number) => decodeSize(from, resultSize(from, most), network);
  t.deepEqual(at(sizeLimits.preview), { width: 1366, height: 1024 });
  t.deepEqual(at(sizeLimits.medium), resultSize(from, sizeLimits.medium));
  t.deepEqual(at(sizeLimits.full), from);
});

test('a flat panorama is decoded completely if one side is below the network input', (t) => {
  const from = { width: 5000, height: 800 };
  t.deepEqual(decodeSize(from, resultSize(from, sizeLimits.preview), network), from);
});
