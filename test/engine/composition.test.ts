import test from 'ava';
import fc from 'fast-check';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine } from '../../src/engine/engine.ts';
import type { Box, Pixels } from '../../src/engine/types.ts';
import { composition, type Geometry, largestCanvas } from '../../src/geometry/compose.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { boxIn, geometry } from '../geometry/arbitraries.ts';

const engine = createEngine(loadAddon(), engineOptions());
test.after.always(() => engine.close(0));

const COLOUR = [200, 30, 90, 255];
const isIn = (box: Box, x: number, y: number) =>
  x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height;

/** One colour in the subject's box and nothing around it; room for the largest canvas. */
function imageOf(width: number, height: number, subject: Box, wanted: Geometry): Pixels {
  const canvas = largestCanvas({ width, height }, wanted);
  const data = new Uint8Array(Math.max(width * height, canvas.width * canvas.height) * 4).fill(0xa5);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++)
      data.set(isIn(subject, x, y) ? COLOUR : [0, 0, 0, 0], (y * width + x) * 4);
  }
  return { data, width, height };
}

const imageAndSubject = fc
  .record({ width: fc.integer({ min: 1, max: 80 }), height: fc.integer({ min: 1, max: 80 }) })
  .chain((image) => boxIn(image).map((subject) => ({ image, subject })));

test('the engine draws every plan of src/geometry: the subject fills its box, whatever its scale', async (t) => {
  let enlarged = 0;
  await fc.assert(
    fc.asyncProperty(imageAndSubject, geometry, async ({ image, subject }, wanted) => {
      const pixels = imageOf(image.width, image.height, subject, wanted);
      const plan = composition(image, subject, wanted);
      if (plan.target.width > plan.source.width && plan.target.height > plan.source.height) enlarged++;
      const result = await engine.compose(pixels, plan);
      t.deepEqual(result.box, plan.subject);
      const words = new Uint32Array(pixels.data.buffer, 0, plan.width * plan.height);
      const colour = new Uint32Array(Uint8Array.from(COLOUR).buffer)[0] ?? 0;
      const wrong = words.findIndex((word, i) => {
        if (isIn(plan.subject, i % plan.width, Math.floor(i / plan.width))) return word !== colour;
        // A shadow is black.
        return plan.shadow === undefined ? word !== 0 : (word & 0xffffff) !== 0;
      });
      t.is(wrong, -1);
    }),
    // About one in eight enlarges: enough runs that the count below is certain.
    { numRuns: 400 },
  );
  t.true(enlarged >= 10, `${enlarged} plans enlarged`);
});

test('a crop whose margins leave the image: the subject is enlarged into a canvas larger than the image', async (t) => {
  const px = (value: number) => ({ value, unit: 'px' as const });
  const image = { width: 60, height: 50 };
  const subject = { left: 20, top: 15, width: 20, height: 20 };
  const wanted: Geometry = {
    crop: true,
    cropMargin: { top: px(40), right: px(60), bottom: px(40), left: px(60) },
    scale: 0.8,
    position: undefined,
    shadowOpacity: 0,
  };
  const plan = composition(image, subject, wanted);
  // 80 % of a canvas of 140 x 100, in its middle.
  const target = { left: 30, top: 10, width: 80, height: 80 };
  t.deepEqual(plan, { width: 140, height: 100, source: subject, target, subject: target });

  // A soft ramp to the right instead of one colour, over hidden green.
  const pixels = imageOf(60, 50, subject, wanted);
  for (let y = 0; y < 50; y++) {
    for (let x = 0; x < 60; x++) {
      const value = [255, 255, 255, 10 + 12 * (x - 20)];
      pixels.data.set(isIn(subject, x, y) ? value : [0, 255, 0, 0], (y * 60 + x) * 4);
    }
  }
  const result = await engine.compose(pixels, plan);
  t.deepEqual([result.box, result.opaque], [target, false]);
  const row = (y: number) => [...pixels.data.subarray(y * 560, (y + 1) * 560)];
  t.deepEqual(row(9), Array(560).fill(0));
  t.deepEqual(row(90), Array(560).fill(0));
  for (const y of [10, 37, 89]) {
    const line = row(y);
    t.deepEqual([line.slice(0, 120), line.slice(440)], [Array(120).fill(0), Array(120).fill(0)]);
    const shown = Array.from({ length: 80 }, (_, x) => line.slice((30 + x) * 4, (30 + x) * 4 + 4));
    t.true(shown.every(([r, g, b]) => r === 255 && g === 255 && b === 255));
    // Four pixels per step of 12, with aligned centres; the borders are repeated.
    shown.slice(8, 72).forEach(([, , , alpha = 0], i) => {
      const expected = 10 + 12 * ((i + 8.5) / 4 - 0.5);
      t.true(Math.abs(alpha - expected) <= 1, `alpha ${alpha} for ${expected}`);
    });
  }
});
