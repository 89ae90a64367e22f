import test from 'ava';
import fc from 'fast-check';
import type { Box } from '../../src/engine/types.ts';
import { isInside } from '../../src/geometry/box.ts';
import { inPixels, type Length } from '../../src/geometry/length.ts';
import { type Roi, roiBox, roiFault, roiParser, wholeImage } from '../../src/geometry/roi.ts';
import type { Dimensions } from '../../src/image/types.ts';
import { dimensions, wholeOf } from './arbitraries.ts';

const read = (text: string): Roi => {
  const roi = roiParser.parse(text);
  if (roi === undefined) throw new Error(`not a roi: ${text}`);
  return roi;
};

for (const text of ['0% 0% 100% 100%', '0 0 100% 100%', '10px 20px 30px 40px', '0.0 .5% 12.5px\t50%  ']) {
  test(`"${text}" is a roi`, (t) => t.not(roiParser.parse(text.trim()), undefined));
}

for (const text of [
  '0',
  '0 0 100%',
  '0 0 100% 100% 5px',
  '0 0 100 100',
  '0 0 -5px 5px',
  '0,0,5px,5px',
  '0 0 5. 5px',
]) {
  test(`"${text}" is not a roi`, (t) => t.is(roiParser.parse(text), undefined));
}

const zero: Length = { value: 0, unit: 'px' };

const input = { width: 1000, height: 800 };

for (const [text, fault] of [
  ['0 0 100% 100%', undefined],
  ['0 0 1000px 800px', undefined],
  ['999px 0 1000px 1px', undefined],
  ['0 0 0.5px 0.5px', undefined],
  ['0 0 1001px 800px', 'roi_exceeds_bounds'],
  ['0 0 1000px 800.5px', 'roi_exceeds_bounds'],
  ['0 0 100% 101%', 'roi_exceeds_bounds'],
  ['1200px 0 1000px 800px', 'roi_exceeds_bounds'],
  [`0 0 ${'9'.repeat(400)}px 1px`, 'roi_exceeds_bounds'],
  ['50% 0 500px 100%', 'roi_region_empty'],
  ['0 30% 100% 20%', 'roi_region_empty'],
  ['0 0 0 0', 'roi_region_empty'],
  ['100% 100% 100% 100%', 'roi_region_empty'],
] as const) {
  test(`"${text.slice(0, 30)}" of 1000x800: ${fault ?? 'valid'}`, (t) =>
    t.is(roiFault(read(text), input), fault));
}

test('the region is rounded outward to pixels of the reduced result', (t) => {
  const result = { width: 500, height: 400 };
  t.deepEqual(roiBox(read('101px 50% 203px 799px'), input, result), {
    left: 50,
    top: 200,
    width: 52,
    height: 200,
  });
  t.deepEqual(roiBox(read('10% 0 90% 100%'), input, input), { left: 100, top: 0, width: 800, height: 800 });
});

test('corners that are nearly equal in floating point still give a pixel of the result', (t) => {
  for (const [x1, x2, from, to] of [
    ['2.6666666666666665px', '2.666666666666667px', 4, 3],
    ['0', `0.${'0'.repeat(323)}5px`, 4, 1],
    ['3.9999999999999996px', '4px', 4, 3],
    ['99.99999999999999%', '100%', 4, 3],
    ['1022.9999999999999px', '1023px', 1023, 513],
  ] as const) {
    const roi = read(`${x1} 0 ${x2} 100%`);
    const [input, result] = [from, to].map((side) => ({ width: side, height: side }));
    if (input === undefined || result === undefined) return t.fail();
    t.is(roiFault(roi, input), undefined, x1);
    const box = roiBox(roi, input, result);
    t.is(box.width, 1, x1);
    t.true(isInside(box, wholeOf(result)), x1);
  }
});

const corner = fc.record({
  share: fc.double({ min: 0, max: 1, noNaN: true }),
  unit: fc.constantFrom('px' as const, '%' as const),
});

/** The two ends of a roi along a side of that many pixels. */
const ends = (side: number) =>
  fc
    .tuple(corner, corner)
    .map((corners) =>
      corners
        .sort((one, other) => one.share - other.share)
        .map(({ share, unit }): Length => ({ value: share * (unit === 'px' ? side : 100), unit })),
    );

/** An input, the size it is reduced to, and a valid roi. */
const cases = fc
  .tuple(dimensions, fc.double({ min: 0.01, max: 1, noNaN: true }))
  .chain(([input, shrink]) =>
    fc.record({
      input: fc.constant(input),
      result: fc.constant({
        width: Math.max(1, Math.floor(input.width * shrink)),
        height: Math.max(1, Math.floor(input.height * shrink)),
      }),
      roi: fc
        .tuple(ends(input.width), ends(input.height))
        .map(([[x1 = zero, x2 = zero], [y1 = zero, y2 = zero]]): Roi => ({ x1, y1, x2, y2 })),
    }),
  )
  .filter(({ roi, input }) => roiFault(roi, input) === undefined);

const far = ({ left, top, width, height }: Box) => ({ right: left + width, bottom: top + height });

test('a box is not empty, lies inside the result, and contains the region to less than a pixel', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(cases, ({ input, result, roi }) => {
        const box = roiBox(roi, input, result);
        const at = (length: Length, from: number, to: number) => (inPixels(length, from) * to) / from;
        const { right, bottom } = far(box);
        const near = (edge: number, exact: number) => Math.abs(edge - exact) < 1 + 1e-6;
        return (
          isInside(box, wholeOf(result)) &&
          near(box.left, at(roi.x1, input.width, result.width)) &&
          near(right, at(roi.x2, input.width, result.width)) &&
          near(box.top, at(roi.y1, input.height, result.height)) &&
          near(bottom, at(roi.y2, input.height, result.height)) &&
          box.left <= at(roi.x1, input.width, result.width) + 1e-6 &&
          right >= at(roi.x2, input.width, result.width) - 1e-6
        );
      }),
    ),
  );
});

test('a larger region never gives a smaller box', (t) => {
  const grow = fc.double({ min: 0, max: 1, noNaN: true });
  t.notThrows(() =>
    fc.assert(
      fc.property(cases, grow, grow, ({ input, result, roi }, down, up) => {
        const smaller = ({ value, unit }: Length): Length => ({ value: value * down, unit });
        const larger = ({ value, unit }: Length, side: number): Length => {
          const most = unit === '%' ? 100 : side;
          return { value: Math.min(most, value + (most - value) * up), unit };
        };
        const wider = {
          x1: smaller(roi.x1),
          y1: smaller(roi.y1),
          x2: larger(roi.x2, input.width),
          y2: larger(roi.y2, input.height),
        };
        return isInside(roiBox(roi, input, result), roiBox(wider, input, result));
      }),
    ),
  );
});

test('the whole image is the whole result', (t) => {
  fc.assert(
    fc.property(cases, ({ input, result }: { input: Dimensions; result: Dimensions }) => {
      t.deepEqual(roiBox(wholeImage, input, result), wholeOf(result));
      const inPx = read(`0 0 ${input.width}px ${input.height}px`);
      t.deepEqual(roiBox(inPx, input, result), wholeOf(result));
    }),
  );
});
