import test from 'ava';
import fc from 'fast-check';
import { isInside } from '../../src/geometry/box.ts';
import { cropBox, cropMarginParser, largestCrop, type Margin, noMargin } from '../../src/geometry/crop.ts';
import { dropShadow, shadowExtent } from '../../src/geometry/shadow.ts';
import { imageAndSubject, margin, opacity } from './arbitraries.ts';

const shown = (margin: Margin | undefined) =>
  margin &&
  [margin.top, margin.right, margin.bottom, margin.left]
    .map(({ value, unit }) => `${value}${unit}`)
    .join(' ');

for (const [text, sides] of [
  ['0', '0px 0px 0px 0px'],
  ['0%', '0px 0px 0px 0px'],
  ['10%', '10% 10% 10% 10%'],
  ['10px', '10px 10px 10px 10px'],
  ['10px 20%', '10px 20% 10px 20%'],
  ['1px 2% 3px 0', '1px 2% 3px 0px'],
  ['12.5%', '12.5% 12.5% 12.5% 12.5%'],
  ['50%', '50% 50% 50% 50%'],
  ['50.1%', '50% 50% 50% 50%'],
  ['500px 501px', '500px 500px 500px 500px'],
  ['99999px 80% 3px 100%', '500px 50% 3px 50%'],
  [`${'9'.repeat(400)}px`, '500px 500px 500px 500px'],
] as const) {
  test(`crop_margin "${text.slice(0, 30)}" is ${sides} (top, right, bottom, left)`, (t) => {
    t.is(shown(cropMarginParser.parse(text)), sides);
  });
}

for (const text of ['1px 2px 3px', '1px 2px 3px 4px 5px', '10', '10px 5', '-1px', '10em', '10px,10px']) {
  test(`crop_margin "${text}" is invalid`, (t) => t.is(cropMarginParser.parse(text), undefined));
}

test('without margin and shadow the crop is the subject', (t) => {
  fc.assert(
    fc.property(imageAndSubject, ({ image, subject }) => {
      t.deepEqual(cropBox(image, subject, noMargin, 0), subject);
    }),
  );
});

test('margins are exact on every side, also outside the image', (t) => {
  fc.assert(
    fc.property(imageAndSubject, margin, opacity, ({ image, subject }, margin, opacity) => {
      const bare = cropBox(image, subject, noMargin, opacity);
      const box = cropBox(image, subject, margin, opacity);
      const pixels = (side: keyof Margin, whole: number) => {
        const { value, unit } = margin[side];
        return unit === 'px' ? value : Math.round((whole * value) / 100);
      };
      t.is(bare.left - box.left, pixels('left', subject.width));
      t.is(bare.top - box.top, pixels('top', subject.height));
      t.is(box.width - bare.width, pixels('left', subject.width) + pixels('right', subject.width));
      t.is(box.height - bare.height, pixels('top', subject.height) + pixels('bottom', subject.height));
    }),
  );
});

test('the crop holds the whole shadow, except where the image cuts the subject', (t) => {
  fc.assert(
    fc.property(imageAndSubject, ({ image, subject }) => {
      const box = cropBox(image, subject, noMargin, 0.5);
      const extent = shadowExtent(subject, dropShadow(subject, image.height, 0.5));
      const right = subject.left + subject.width;
      const bottom = subject.top + subject.height;
      t.is(box.left, subject.left === 0 ? 0 : extent.left);
      t.is(box.top, subject.top === 0 ? 0 : extent.top);
      t.is(box.left + box.width, right === image.width ? right : extent.left + extent.width);
      t.is(box.top + box.height, bottom === image.height ? bottom : extent.top + extent.height);
    }),
  );
});

test('the crop holds the subject and is never larger than the largest', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(imageAndSubject, margin, opacity, ({ image, subject }, margin, opacity) => {
        const box = cropBox(image, subject, margin, opacity);
        const most = largestCrop(image, margin, opacity);
        return isInside(subject, box) && box.width <= most.width && box.height <= most.height;
      }),
    ),
  );
});
