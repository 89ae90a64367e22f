import test from 'ava';
import fc from 'fast-check';
import type { Box } from '../../src/engine/types.ts';
import { isInside, sameBox } from '../../src/geometry/box.ts';
import { composition, type Geometry, isIdentity, largestCanvas } from '../../src/geometry/compose.ts';
import { NO_MARGIN } from '../../src/geometry/crop.ts';
import { dropShadow, shadowExtent } from '../../src/geometry/shadow.ts';
import { geometry, margin, opacity, pictureAndSubject, wholeOf } from './arbitraries.ts';

const untouched: Geometry = {
  crop: false,
  cropMargin: NO_MARGIN,
  scale: 'original',
  position: undefined,
  shadowOpacity: 0,
};

const picture = { width: 1000, height: 800 };
const subject = { left: 300, top: 200, width: 200, height: 400 };
const px = (value: number) => ({ value, unit: 'px' as const });

test('crop cuts to the subject', (t) => {
  t.deepEqual(composition(picture, subject, { ...untouched, crop: true }), {
    width: 200,
    height: 400,
    source: subject,
    target: { left: 0, top: 0, width: 200, height: 400 },
    subject: { left: 0, top: 0, width: 200, height: 400 },
  });
});

test('a margin may leave the picture: what is not in it is not shown', (t) => {
  const cropMargin = { top: px(10), right: px(20), bottom: px(300), left: px(400) };
  t.deepEqual(composition(picture, subject, { ...untouched, crop: true, cropMargin }), {
    width: 620,
    height: 710,
    source: { left: 0, top: 190, width: 520, height: 610 },
    target: { left: 100, top: 0, width: 520, height: 610 },
    subject: { left: 400, top: 10, width: 200, height: 400 },
  });
});

test('a margin without crop does nothing', (t) => {
  const cropMargin = { top: px(10), right: px(20), bottom: px(300), left: px(400) };
  t.true(isIdentity(picture, composition(picture, subject, { ...untouched, cropMargin })));
});

test('scale works on the cropped canvas, margins included', (t) => {
  const cropMargin = { top: px(100), right: px(100), bottom: px(100), left: px(100) };
  t.deepEqual(composition(picture, subject, { ...untouched, crop: true, cropMargin, scale: 1 }), {
    width: 400,
    height: 600,
    source: subject,
    target: { left: 50, top: 0, width: 300, height: 600 },
    subject: { left: 50, top: 0, width: 300, height: 600 },
  });
});

test('the shadow is that of the scaled subject, and fades where the canvas cuts it', (t) => {
  const geometry = { ...untouched, scale: 0.5, shadowOpacity: 0.7 };
  const middle = composition(picture, subject, geometry);
  t.deepEqual(middle.shadow, { opacity: 0.7, sigma: 8, offsetX: 0, offsetY: 8, fade: 0 });
  const low = composition(picture, subject, { ...geometry, position: { x: 0.5, y: 1 } });
  t.deepEqual(low.shadow, { opacity: 0.7, sigma: 8, offsetX: 0, offsetY: 8, fade: 12 });
});

test('a crop grows to hold the shadow', (t) => {
  const {
    width,
    height,
    subject: after,
    shadow,
  } = composition(picture, subject, {
    ...untouched,
    crop: true,
    shadowOpacity: 0.5,
  });
  // sigma 8, so 24 pixels around the box, which is moved 8 pixels down
  t.deepEqual({ width, height }, { width: 248, height: 448 });
  t.deepEqual(after, { left: 24, top: 16, width: 200, height: 400 });
  t.is(shadow?.fade, 0);
});

test('a subject that is empty or not in the picture is a mistake of the caller', (t) => {
  for (const wrong of [
    { ...subject, width: 0 },
    { ...subject, height: 0 },
    { ...subject, left: -1 },
    { ...subject, left: 801 },
    { ...subject, top: 401 },
  ]) {
    t.throws(() => composition(picture, wrong, untouched), { instanceOf: RangeError });
  }
});

test('scale=original position=original without crop and shadow changes nothing', (t) => {
  fc.assert(
    fc.property(
      pictureAndSubject,
      margin,
      fc.constantFrom('original' as const, undefined),
      ({ picture, subject }, cropMargin, position) => {
        const plan = composition(picture, subject, { ...untouched, cropMargin, position });
        t.true(isIdentity(picture, plan));
        t.deepEqual(plan, {
          ...picture,
          source: wholeOf(picture),
          target: wholeOf(picture),
          subject,
        });
      },
    ),
  );
});

test('a shadow, a scale, a move or another canvas is no identity', (t) => {
  t.false(isIdentity(picture, composition(picture, wholeOf(picture), { ...untouched, scale: 0.5 })));
  t.false(isIdentity(picture, composition(picture, subject, { ...untouched, shadowOpacity: 0.5 })));
  t.false(isIdentity(picture, composition(picture, subject, { ...untouched, position: { x: 0, y: 0 } })));
  t.false(isIdentity(picture, composition(picture, subject, { ...untouched, crop: true })));
});

test('crop without margin, shadow and scale: the subject is the result (X-Foreground-* 0, 0, width, height)', (t) => {
  fc.assert(
    fc.property(pictureAndSubject, ({ picture, subject }) => {
      const plan = composition(picture, subject, { ...untouched, crop: true });
      t.deepEqual(plan.subject, wholeOf(plan));
      t.deepEqual(
        { width: plan.width, height: plan.height },
        { width: subject.width, height: subject.height },
      );
    }),
  );
});

test('without crop the canvas is the picture, whatever else is wanted', (t) => {
  fc.assert(
    fc.property(pictureAndSubject, geometry, ({ picture, subject }, wanted) => {
      const { width, height } = composition(picture, subject, { ...wanted, crop: false });
      t.deepEqual({ width, height }, picture);
    }),
  );
});

/** How far every side of `inner` lies inside `outer`. */
const distances = (inner: Box, outer: Box) => [
  inner.left - outer.left,
  inner.top - outer.top,
  outer.left + outer.width - inner.left - inner.width,
  outer.top + outer.height - inner.top - inner.height,
];

test('every box lies inside its picture or canvas, and the engine can be given the plan', (t) => {
  fc.assert(
    fc.property(pictureAndSubject, geometry, ({ picture, subject }, wanted) => {
      const plan = composition(picture, subject, wanted);
      const { source, target } = plan;
      const canvas = wholeOf(plan);
      t.true(
        [plan.width, plan.height, ...Object.values(source), ...Object.values(target)].every(
          Number.isSafeInteger,
        ),
      );
      t.true(
        isInside(source, wholeOf(picture)) && isInside(target, canvas) && isInside(plan.subject, canvas),
      );
      t.true(isInside(subject, source) && isInside(plan.subject, target));
      const enlarged = target.width >= source.width && target.height >= source.height;
      const reduced = target.width <= source.width && target.height <= source.height;
      t.true(enlarged || reduced);
      // The subject lies in the target as it lay in the source, or is all of both.
      t.deepEqual(distances(plan.subject, target), distances(subject, source));
    }),
    { numRuns: 2000 },
  );
});

test('nothing of the picture that fits on an unscaled, unmoved canvas is left out', (t) => {
  fc.assert(
    fc.property(pictureAndSubject, margin, opacity, ({ picture, subject }, cropMargin, shadowOpacity) => {
      const plan = composition(picture, subject, { ...untouched, crop: true, cropMargin, shadowOpacity });
      t.is(plan.source.width, plan.target.width);
      t.is(plan.source.height, plan.target.height);
      // On every side, source or target has reached its border.
      const open = distances(plan.source, wholeOf(picture)).map((room, side) =>
        Math.min(room, distances(plan.target, wholeOf(plan))[side] ?? 0),
      );
      t.deepEqual(open, [0, 0, 0, 0]);
    }),
  );
});

test('the shadow of a crop lies on the canvas, except where the picture cut the subject', (t) => {
  fc.assert(
    fc.property(pictureAndSubject, margin, ({ picture, subject }, cropMargin) => {
      const plan = composition(picture, subject, {
        ...untouched,
        crop: true,
        cropMargin,
        shadowOpacity: 0.5,
      });
      if (plan.shadow === undefined) return t.fail();
      const room = distances(shadowExtent(plan.subject, plan.shadow), wholeOf(plan));
      const cut = distances(subject, wholeOf(picture)).map((distance) => distance === 0);
      t.true(room.every((pixels, side) => pixels >= 0 || cut[side]));
    }),
  );
});

test('the shadow is that of the subject as it lies on the canvas; opacity 0 draws none', (t) => {
  fc.assert(
    fc.property(pictureAndSubject, geometry, ({ picture, subject }, wanted) => {
      const plan = composition(picture, subject, wanted);
      const { shadowOpacity } = wanted;
      const expected = shadowOpacity > 0 ? dropShadow(plan.subject, plan.height, shadowOpacity) : undefined;
      t.deepEqual(plan.shadow, expected);
    }),
  );
});

test('no subject makes a canvas larger than the largest, and the whole picture as subject makes no smaller one', (t) => {
  fc.assert(
    fc.property(pictureAndSubject, geometry, ({ picture, subject }, wanted) => {
      const plan = composition(picture, subject, wanted);
      const most = largestCanvas(picture, wanted);
      t.true(plan.width <= most.width && plan.height <= most.height);
      const whole = composition(picture, wholeOf(picture), { ...wanted, shadowOpacity: 0 });
      t.true(sameBox(wholeOf(whole), wholeOf(largestCanvas(picture, { ...wanted, shadowOpacity: 0 }))));
    }),
  );
});
