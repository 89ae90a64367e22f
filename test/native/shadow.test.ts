import test from 'ava';
import fc from 'fast-check';
import { type DropShadow, type Image, loadKernels, SCALAR } from './kernelsAddon.ts';
import { paint, whole } from './kernelsImages.ts';

const kernels = loadKernels();
const plain: DropShadow = { opacity: 1, sigma: 8, offsetX: 0, offsetY: 0, fade: 0 };

const at = (values: Float32Array, image: Image, x: number, y: number) => values[y * image.width + x] ?? -1;

/** An opaque box with soft corners on a canvas. */
function subject(width: number, height: number, box = whole({ width, height })): Image {
  return paint(width, height, (x, y) => {
    const inside = x >= box.left && y >= box.top && x < box.left + box.width && y < box.top + box.height;
    return [0, 0, 0, inside ? 255 - ((x * y) % 90) : 0];
  });
}

function difference(a: Float32Array, b: Float32Array): number {
  let most = a.length === b.length ? 0 : Number.POSITIVE_INFINITY;
  a.forEach((value, i) => {
    most = Math.max(most, Math.abs(value - (b[i] ?? Number.NaN)));
  });
  return most;
}

const anyShadow = fc.record({
  width: fc.integer({ min: 1, max: 150 }),
  height: fc.integer({ min: 1, max: 120 }),
  left: fc.double({ min: 0, max: 0.7, noNaN: true }),
  top: fc.double({ min: 0, max: 0.7, noNaN: true }),
  shadow: fc.record({
    opacity: fc.constantFrom(0, 0.35, 1),
    sigma: fc.constantFrom(0.1, 0.7, 1.5, 5.9, 6, 12, 13.3, 40),
    offsetX: fc.integer({ min: -200, max: 200 }),
    offsetY: fc.integer({ min: -30, max: 30 }),
    fade: fc.constantFrom(0, 1, 9, 400),
  }),
});

test('a shadow is within 0.015 of the full-size Gaussian', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyShadow, ({ width, height, left, top, shadow }) => {
        const [x, y] = [Math.floor(left * width), Math.floor(top * height)];
        const box = { left: x, top: y, width: Math.ceil((width - x) * 0.9), height: height - y };
        const canvas = subject(width, height, box);
        const fast = kernels.shadow(canvas, box, shadow, 1);
        return difference(fast, kernels.shadow(canvas, box, shadow, SCALAR)) <= 0.015;
      }),
      { numRuns: 150 },
    ),
  );
});

test('a shadow has the same bits for any number of threads', (t) => {
  const box = { left: 60, top: 50, width: 300, height: 280 };
  const canvas = subject(500, 400, box);
  for (const sigma of [2, 30]) {
    const alone = kernels.shadow(canvas, box, { ...plain, sigma, offsetY: 20 }, 0);
    for (const threads of [1, 3]) {
      t.deepEqual(kernels.shadow(canvas, box, { ...plain, sigma, offsetY: 20 }, threads), alone);
    }
  }
});

test('a straight edge casts half the shadow on itself, and the Gaussian integral beside', (t) => {
  const box = { left: 0, top: 0, width: 800, height: 300 };
  const canvas = paint(800, 600, (_, y) => [0, 0, 0, y < 300 ? 255 : 0]);
  const strengths = kernels.shadow(canvas, box, { ...plain, sigma: 40, opacity: 0.5 }, 1);
  // Normal distribution at 0, 1 and 2 sigmas from the edge.
  for (const [sigmas, expected] of [
    [-2, 0.97725],
    [-1, 0.84134],
    [0, 0.5],
    [1, 0.15866],
    [2, 0.02275],
  ] as const) {
    const got = at(strengths, canvas, 400, 300 + sigmas * 40);
    t.true(Math.abs(got - expected * 0.5) < 0.006, `${sigmas} sigmas: ${got} for ${expected * 0.5}`);
  }
});

test('a shadow keeps the sum of the alpha, whatever the block size', (t) => {
  const box = { left: 350, top: 330, width: 60, height: 80 };
  const canvas = paint(760, 740, (x, y) => {
    const inside = x >= 350 && x < 410 && y >= 330 && y < 410;
    return [0, 0, 0, inside ? 255 : 0];
  });
  for (const sigma of [0.5, 5, 6, 25, 100]) {
    const strengths = kernels.shadow(canvas, box, { ...plain, sigma }, 1);
    const sum = strengths.reduce((total, value) => total + value, 0);
    t.true(Math.abs(sum / 4800 - 1) < 0.01, `sigma ${sigma}: ${sum / 4800}`);
  }
});

test('a shadow moves by whole pixels with its offset', (t) => {
  const wrong: string[] = [];
  const box = { left: 200, top: 150, width: 50, height: 40 };
  const canvas = subject(500, 400, box);
  const still = kernels.shadow(canvas, box, { ...plain, sigma: 14 }, 1);
  const moved = kernels.shadow(canvas, box, { ...plain, sigma: 14, offsetX: 13, offsetY: -7 }, 1);
  for (let y = 60; y < 300; y += 7) {
    for (let x = 100; x < 400; x++) {
      const [a, b] = [at(still, canvas, x, y), at(moved, canvas, x + 13, y - 7)];
      if (Math.abs(a - b) > 1e-6) wrong.push(`${a} at ${x}, ${y}, ${b} moved`);
    }
  }
  t.deepEqual(wrong.slice(0, 5), []);
});

test('a shadow is limited to its extent, and nothing visible is cut off', (t) => {
  const box = { left: 300, top: 280, width: 150, height: 90 };
  for (const sigma of [0.4, 3, 20, 37]) {
    const shadow = { ...plain, sigma, offsetX: -40, offsetY: 25 };
    const canvas = paint(760, 640, (x, y) => {
      const inside = x >= 300 && x < 450 && y >= 280 && y < 370;
      return [0, 0, 0, inside ? 255 : 0];
    });
    const radius = Math.ceil(3 * sigma);
    const extent = kernels.shadowExtent(box, shadow);
    t.deepEqual(extent, {
      left: Math.min(300, 260 - radius),
      top: Math.min(280, 305 - radius),
      width: Math.max(450, 410 + radius) - Math.min(300, 260 - radius),
      height: Math.max(370, 395 + radius) - Math.min(280, 305 - radius),
    });
    const strengths = kernels.shadow(canvas, box, shadow, 1);
    strengths.forEach((value, i) => {
      const [x, y] = [i % 760, Math.floor(i / 760)];
      const inside =
        x >= extent.left &&
        x < extent.left + extent.width &&
        y >= extent.top &&
        y < extent.top + extent.height;
      if (value > 0 && !inside) t.fail(`${value} at ${x}, ${y}, sigma ${sigma}`);
    });
    // Just inside the extent less than one level of a full shadow is left: the cut is invisible.
    const below = at(strengths, canvas, 335, 394 + radius);
    t.true(below * 255 < 1, `${below * 255} levels, sigma ${sigma}`);
  }
});

test('the shadow of a subject cut by the lower border fades there; that of one above it does not', (t) => {
  const canvas = paint(300, 300, (_, y) => [0, 0, 0, y >= 100 ? 255 : 0]);
  const box = { left: 0, top: 100, width: 300, height: 200 };
  const shadow = { ...plain, sigma: 5, fade: 10 };
  const strengths = kernels.shadow(canvas, box, shadow, 1);
  const without = kernels.shadow(canvas, box, { ...shadow, fade: 0 }, 1);
  t.is(at(strengths, canvas, 150, 289), at(without, canvas, 150, 289));
  t.true(Math.abs(at(strengths, canvas, 150, 294) / at(without, canvas, 150, 294) - 0.55) < 1e-4);
  t.true(Math.abs(at(strengths, canvas, 150, 299) / at(without, canvas, 150, 299) - 0.05) < 1e-4);

  const above = subject(300, 301, { ...box, left: 50, width: 200 });
  const higher = { ...box, left: 50, width: 200 };
  t.deepEqual(
    kernels.shadow(above, higher, shadow, 1),
    kernels.shadow(above, higher, { ...shadow, fade: 0 }, 1),
  );
});
