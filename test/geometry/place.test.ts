import test from 'ava';
import fc from 'fast-check';
import { isInside } from '../../src/geometry/box.ts';
import { placedBox, positionParser, scaleParser } from '../../src/geometry/place.ts';
import { imageAndSubject, position, scale, wholeOf } from './arbitraries.ts';

for (const [text, value] of [
  ['original', 'original'],
  ['Original', 'original'],
  ['10%', 0.1],
  ['80%', 0.8],
  ['33.5%', 0.335],
  ['100%', 1],
  ['9.9%', undefined],
  ['0%', undefined],
  ['0', undefined],
  ['101%', undefined],
  ['80', undefined],
  ['80px', undefined],
  ['80% 80%', undefined],
  ['center', undefined],
] as const) {
  test(`scale "${text}" is ${value ?? 'invalid'}`, (t) => t.is(scaleParser.parse(text), value));
}

for (const [text, value] of [
  ['original', 'original'],
  ['center', { x: 0.5, y: 0.5 }],
  ['CENTER', { x: 0.5, y: 0.5 }],
  ['0%', { x: 0, y: 0 }],
  ['25%', { x: 0.25, y: 0.25 }],
  ['20%  80%', { x: 0.2, y: 0.8 }],
  ['100% 0%', { x: 1, y: 0 }],
  ['0', undefined],
  ['101%', undefined],
  ['50% 101%', undefined],
  ['1% 2% 3%', undefined],
  ['10px 10px', undefined],
  ['center center', undefined],
  ['original center', undefined],
  ['left', undefined],
] as const) {
  test(`position "${text}" is ${value ? JSON.stringify(value) : 'invalid'}`, (t) => {
    t.deepEqual(positionParser.parse(text), value);
  });
}

test('a subject is enlarged or reduced to its share of the canvas, and centred by default', (t) => {
  const canvas = { width: 1000, height: 800 };
  const small = { left: 10, top: 20, width: 100, height: 50 };
  t.deepEqual(placedBox(canvas, small, 0.5, undefined), { left: 250, top: 275, width: 500, height: 250 });
  const large = { left: 0, top: 0, width: 1000, height: 800 };
  t.deepEqual(placedBox(canvas, large, 0.1, { x: 1, y: 0 }), { left: 900, top: 0, width: 100, height: 80 });
});

test('position=original with a scale keeps the centre, as far as the canvas allows', (t) => {
  const canvas = { width: 1000, height: 1000 };
  const subject = { left: 600, top: 100, width: 100, height: 100 };
  t.deepEqual(placedBox(canvas, subject, 0.4, 'original'), { left: 450, top: 0, width: 400, height: 400 });
  t.deepEqual(placedBox(canvas, subject, 0.2, 'original'), { left: 550, top: 50, width: 200, height: 200 });
});

test('a position moves a subject without scaling it', (t) => {
  const canvas = { width: 100, height: 100 };
  const subject = { left: 3, top: 4, width: 20, height: 40 };
  t.deepEqual(placedBox(canvas, subject, 'original', { x: 1, y: 0.5 }), {
    left: 80,
    top: 30,
    width: 20,
    height: 40,
  });
});

test('scale=original position=original keeps the place; so does leaving both out', (t) => {
  fc.assert(
    fc.property(
      imageAndSubject,
      fc.constantFrom('original' as const, undefined),
      ({ image, subject }, position) => {
        t.deepEqual(placedBox(image, subject, 'original', position), subject);
      },
    ),
  );
});

test('a subject never leaves the canvas', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(imageAndSubject, scale, position, ({ image, subject }, scale, position) =>
        isInside(placedBox(image, subject, scale, position), wholeOf(image)),
      ),
      { numRuns: 1000 },
    ),
  );
});

test('a scaled subject fills its share in one direction, fits in the other, and keeps its proportions', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(
        imageAndSubject,
        fc.double({ min: 0.1, max: 1, noNaN: true }),
        ({ image, subject }, share) => {
          const { width, height } = placedBox(image, subject, share, undefined);
          const [roomX, roomY] = [image.width * share, image.height * share];
          const fits = width < roomX + 1 && height < roomY + 1;
          const fills = Math.abs(width - roomX) < 1 || Math.abs(height - roomY) < 1;
          const factor = share * Math.min(image.width / subject.width, image.height / subject.height);
          const proportional =
            Math.abs(width - subject.width * factor) < 1 && Math.abs(height - subject.height * factor) < 1;
          const sameWay =
            (width >= subject.width && height >= subject.height) ||
            (width <= subject.width && height <= subject.height);
          return fits && fills && proportional && sameWay;
        },
      ),
      { numRuns: 1000 },
    ),
  );
});

test('0 % touches the left and top border, 100 % the right and bottom one', (t) => {
  fc.assert(
    fc.property(imageAndSubject, scale, ({ image, subject }, scale) => {
      const first = placedBox(image, subject, scale, { x: 0, y: 0 });
      const last = placedBox(image, subject, scale, { x: 1, y: 1 });
      t.deepEqual([first.left, first.top], [0, 0]);
      t.deepEqual([last.left + last.width, last.top + last.height], [image.width, image.height]);
    }),
  );
});

test('the middle leaves the same space on both sides, to a pixel', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(imageAndSubject, scale, ({ image, subject }, scale) => {
        const box = placedBox(image, subject, scale, { x: 0.5, y: 0.5 });
        return (
          Math.abs(image.width - box.width - 2 * box.left) <= 1 &&
          Math.abs(image.height - box.height - 2 * box.top) <= 1
        );
      }),
    ),
  );
});
