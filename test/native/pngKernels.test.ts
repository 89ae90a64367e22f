import { crc32, deflateSync } from 'node:zlib';
import test from 'ava';
import fc from 'fast-check';
import { loadPng } from './pngAddon.ts';
import { noise } from './pngImages.ts';

const png = loadPng();
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 700 }),
  fc
    .record({ seed: fc.nat(), length: fc.integer({ min: 0, max: 70_000 }) })
    .map(({ seed, length }) => Uint8Array.from({ length }, noise(seed))),
);

test('crc32 equals its scalar oracle and zlib, from any start value', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(bytes, fc.integer({ min: 0, max: 0xffffffff }), (data, start) => {
        const expected = crc32(data, start);
        return png.crc32(data, start, false) === expected && png.crc32(data, start, true) === expected;
      }),
    ),
  );
});

test('adler32 equals its scalar oracle and zlib, the largest bytes included', (t) => {
  for (const data of [new Uint8Array(0), Buffer.alloc(200_000, 255), Buffer.from('Wikipedia')]) {
    const expected = deflateSync(data).readUInt32BE(deflateSync(data).length - 4);
    t.is(png.adler32(data, 1, false), expected);
    t.is(png.adler32(data, 1, true), expected);
  }
  const start = fc
    .tuple(fc.integer({ min: 0, max: 65_520 }), fc.integer({ min: 0, max: 65_520 }))
    .map(([a, b]) => b * 65_536 + a);
  t.notThrows(() =>
    fc.assert(
      fc.property(
        bytes,
        start,
        (data, from) => png.adler32(data, from, false) === png.adler32(data, from, true),
      ),
    ),
  );
});

test('adler32 of two concatenated runs is computed from both', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(bytes, bytes, (first, second) => {
        const joined = png.adler32(Buffer.concat([first, second]), 1, true);
        const sums = [first, second].map((part) => png.adler32(part, 1, true));
        return png.adler32Combine(sums[0] ?? 0, sums[1] ?? 0, second.length) === joined;
      }),
    ),
  );
});

const rows = fc
  .record({
    seed: fc.nat(),
    pixels: fc.integer({ min: 0, max: 900 }),
    pixel: fc.constantFrom(1, 4),
    shift: fc.constantFrom(0, 5, 7),
  })
  .map(({ seed, pixels, pixel, shift }) => {
    const next = noise(seed);
    const make = () => Uint8Array.from({ length: pixels * pixel }, () => next() >> shift);
    return { row: make(), above: make(), pixel };
  });

for (const [filter, name] of ['None', 'Sub', 'Up', 'Average', 'Paeth'].entries()) {
  test(`filter ${name} equals its scalar oracle, residuals and sum`, (t) => {
    t.notThrows(() =>
      fc.assert(
        fc.property(rows, ({ row, above, pixel }) => {
          const fast = png.filterRow(filter, row, above, pixel, false);
          const scalar = png.filterRow(filter, row, above, pixel, true);
          return fast.sum === scalar.sum && fast.residuals.equals(scalar.residuals);
        }),
      ),
    );
  });
}

test('filter Paeth is right for every left, above and corner', (t) => {
  // One row a (left, corner) pair: a first pixel that sets both, then `above` runs through all values.
  const all = Uint8Array.from({ length: 256 }, (_, i) => i);
  let wrong = 0;
  for (let left = 0; left < 256; left += 3) {
    for (let corner = 0; corner < 256; corner += 5) {
      const row = new Uint8Array(512);
      const above = new Uint8Array(512);
      for (let i = 0; i < 256; i++) {
        row[2 * i] = left;
        above[2 * i] = corner;
        above[2 * i + 1] = all[i] ?? 0;
      }
      const fast = png.filterRow(4, row, above, 1, false).residuals;
      if (!fast.equals(png.filterRow(4, row, above, 1, true).residuals)) wrong++;
    }
  }
  t.is(wrong, 0);
});

test('margins that are zero in both rows are found at both ends', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(
        fc.nat({ max: 500 }),
        fc.uint8Array({ maxLength: 5 }),
        fc.nat({ max: 500 }),
        fc.boolean(),
        (before, middle, after, inAbove) => {
          const filled = Buffer.concat([Buffer.alloc(before), middle, Buffer.alloc(after)]);
          const empty = Buffer.alloc(filled.length);
          const first = filled.findIndex((value) => value !== 0);
          const last = filled.findLastIndex((value) => value !== 0);
          const expected = first < 0 ? [filled.length, filled.length] : [first, filled.length - 1 - last];
          const found = inAbove ? png.zeroMargins(empty, filled) : png.zeroMargins(filled, empty);
          return found[0] === expected[0] && found[1] === expected[1];
        },
      ),
    ),
  );
});
