import test from 'ava';
import fc from 'fast-check';
import type { Box } from '../../src/engine/types.ts';
import { isInside, sameBox } from '../../src/geometry/box.ts';
import { composition, type Geometry, isIdentity, largestCanvas } from '../../src/geometry/compose.ts';
import { noMargin } from '../../src/geometry/crop.ts';
import { dropShadow, shadowExtent } from '../../src/geometry/shadow.ts';
import { geometry, imageAndSubject, margin, opacity, wholeOf } from './arbitraries.ts';

const untouched: Geometry = {
  crop: false,
  cropMargin: noMargin,
  scale: 'original',
  position: undefined,
  shadowOpacity: 0,
};

const image = { width: 1000, height: 800 };
const subject = { left: 300, top: 200, width: 200, height: 400 };
const px = (value: number) => ({ value, unit: 'px' as const });

test('crop cuts to the subject', (t) => {
  t.deepEqual(composition(image, subject, { ...untouched, crop: true }), {
    width: 200,
    height: 400,
    source: subject,
    target: { left: 0, top: 0, width: 200, height: 400 },
    subject: { left: 0, top: 0, width: 200, height: 400 },
  });
});

test('a margin may extend beyond the image, where nothing is shown', (t) => {
  const cropMargin = { top: px(10), right: px(20), bottom: px(300), left: px(400) };
  t.deepEqual(composition(image, subject, { ...untouched, crop: true, cropMargin }), {
    width: 620,
    height: 710,
    source: { left: 0, top: 190, width: 520, height: 610 },
    target: { left: 100, top: 0, width: 520, height: 610 },
    subject: { left: 400, top: 10, width: 200, height: 400 },
  });
});

test('a margin without crop does nothing', (t) => {
  const cropMargin = { top: px(10), right: px(20), bottom: px(300), left: px(400) };
  t.true(isIdentity(image, composition(image, subject, { ...untouched, cropMargin })));
});

test('scale works on the cropped canvas, margins included', (t) => {
  const cropMargin = { top: px(100), right: px(100), bottom: px(100), left: px(100) };
  t.deepEqual(composition(image, subject, { ...untouched, crop: true, cropMargin, scale: 1 }), {
    width: 400,
    height: 600,
    source: subject,
    target: { left: 50, top: 0, width: 300, height: 600 },
    subject: { left: 50, top: 0, width: 300, height: 600 },
  });
});

test('the shadow is that of the scaled subject, and fades where the canvas cuts it', (t) => {
  const geometry = { ...untouched, scale: 0.5, shadowOpacity: 0.7 };
  const middle = composition(image, subject, geometry);
  t.deepEqual(middle.shadow, { opacity: 0.7, sigma: 8, offsetX: 0, offsetY: 8, fade: 0 });
  const low = composition(image, subject, { ...geometry, position: { x: 0.5, y: 1 } });
  t.deepEqual(low.shadow, { opacity: 0.7, sigma: 8, offsetX: 0, offsetY: 8, fade: 12 });
});

test('a crop grows to contain the shadow', (t) => {
  const {
    width,
    height,
    subject: after,
    shadow,
  } = composition(image, subject, {
    ...untouched,
    crop: true,
    shadowOpacity: 0.5,
  });
  // sigma 8, so 24 pixels around the box, which is moved 8 pixels down
  t.deepEqual({ width, height }, { width: 248, height: 448 });
  t.deepEqual(after, { left: 24, top: 16, width: 200, height: 400 });
  t.is(shadow?.fade, 0);
});

test('a subject that is empty or outside the image is an error of the caller', (t) => {
  for (const wrong of [
    { ...subject, width: 0 },
    { ...subject, height: 0 },
    { ...subject, left: -1 },
    { ...subject, left: 801 },
    { ...subject, top: 401 },
  ]) {
    t.throws(() => composition(image, wrong, untouched), { instanceOf: RangeError });
  }
});

test('scale=original position=original without crop and shadow changes nothing', (t) => {
  fc.assert(
    fc.property(
      imageAndSubject,
      margin,
      fc.constantFrom('original' as const, undefined),
      ({ image, subject }, cropMargin, position) => {
        const plan = composition(image, subject, { ...untouched, cropMargin, position });
        t.true(isIdentity(image, plan));
        t.deepEqual(plan, {
          ...image,
          source: wholeOf(image),
          target: wholeOf(image),
          subject,
        });
      },
    ),
  );
});

test('a shadow, a scale, a move or another canvas is not the identity', (t) => {
  t.false(isIdentity(image, composition(image, wholeOf(image), { ...untouched, scale: 0.5 })));
  t.false(isIdentity(image, composition(image, subject, { ...untouched, shadowOpacity: 0.5 })));
  t.false(isIdentity(image, composition(image, subject, { ...untouched, position: { x: 0, y: 0 } })));
  t.false(isIdentity(image, composition(image, subject, { ...untouched, crop: true })));
});

test('crop without margin, shadow and scale: the subject is the result (X-Foreground-* 0, 0, width, height)', (t) => {
  fc.assert(
    fc.property(imageAndSubject, ({ image, subject }) => {
      const plan = composition(image, subject, { ...untouched, crop: true });
      t.deepEqual(plan.subject, wholeOf(plan));
      t.deepEqual(
        { width: plan.width, height: plan.height },
        { width: subject.width, height: subject.height },
      );
    }),
  );
});

test('without crop the canvas is the image, whatever the other options', (t) => {
  fc.assert(
    fc.property(imageAndSubject, geometry, ({ image, subject }, wanted) => {
      const { width, height } = composition(image, subject, { ...wanted, crop: false });
      t.deepEqual({ width, height }, image);
    }),
  );
});

/** Distance of every side of `inner` from that of `outer`. */
const distances = (inner: Box, outer: Box) => [
  inner.left - outer.left,
  inner.top - outer.top,
  outer.left + outer.width - inner.left - inner.width,
  outer.top + outer.height - inner.top - inner.height,
];

test('every box lies inside its image or canvas, and the engine accepts the plan', (t) => {
  fc.assert(
    fc.property(imageAndSubject, geometry, ({ image, subject }, wanted) => {
      const plan = composition(image, subject, wanted);
      const { source, target } = plan;
      const canvas = wholeOf(plan);
      t.true(
        [plan.width, plan.height, ...Object.values(source), ...Object.values(target)].every(
          Number.isSafeInteger,
        ),
      );
      t.true(isInside(source, wholeOf(image)) && isInside(target, canvas) && isInside(plan.subject, canvas));
      t.true(isInside(subject, source) && isInside(plan.subject, target));
      const enlarged = target.width >= source.width && target.height >= source.height;
      const reduced = target.width <= source.width && target.height <= source.height;
      t.true(enlarged || reduced);
      // The subject's position in the target is that in the source, or it fills both.
      t.deepEqual(distances(plan.subject, target), distances(subject, source));
    }),
    { numRuns: 2000 },
  );
});

test('an unscaled, unmoved canvas shows everything of the image that fits', (t) => {
  fc.assert(
    fc.property(imageAndSubject, margin, opacity, ({ image, subject }, cropMargin, shadowOpacity) => {
      const plan = composition(image, subject, { ...untouched, crop: true, cropMargin, shadowOpacity });
      t.is(plan.source.width, plan.target.width);
      t.is(plan.source.height, plan.target.height);
      // On every side, source or target has reached its border.
      const open = distances(plan.source, wholeOf(image)).map((room, side) =>
        Math.min(room, distances(plan.target, wholeOf(plan))[side] ?? 0),
      );
      t.deepEqual(open, [0, 0, 0, 0]);
    }),
  );
});

test('the shadow of a crop lies on the canvas, except where the image cut the subject', (t) => {
  fc.assert(
    fc.property(imageAndSubject, margin, ({ image, subject }, cropMargin) => {
      const plan = composition(image, subject, {
        ...untouched,
        crop: true,
        cropMargin,
        shadowOpacity: 0.5,
      });
      if (plan.shadow === undefined) return t.fail();
      const room = distances(shadowExtent(plan.subject, plan.shadow), wholeOf(plan));
      const cut = distances(subject, wholeOf(image)).map((distance) => distance === 0);
      t.true(room.every((pixels, side) => pixels >= 0 || cut[side]));
    }),
  );
});

test('the shadow is that of the subject on the canvas; opacity 0 draws none', (t) => {
  fc.assert(
    fc.property(imageAndSubject, geometry, ({ image, subject }, wanted) => {
      const plan = composition(image, subject, wanted);
      const { shadowOpacity } = wanted;
      const expected = shadowOpacity > 0 ? dropShadow(plan.subject, plan.height, shadowOpacity) : undefined;
      t.deepEqual(plan.shadow, expected);
    }),
  );
});

test('no subject makes a canvas larger than the largest, and the whole image as subject makes none smaller', (t) => {
  fc.assert(
    fc.property(imageAndSubject, geometry, ({ image, subject }, wanted) => {
      const plan = composition(image, subject, wanted);
      const most = largestCanvas(image, wanted);
      t.true(plan.width <= most.width && plan.height <= most.height);
      const whole = composition(image, wholeOf(image), { ...wanted, shadowOpacity: 0 });
      t.true(sameBox(wholeOf(whole), wholeOf(largestCanvas(image, { ...wanted, shadowOpacity: 0 }))));
    }),
  );
});
