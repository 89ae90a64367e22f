import test from 'ava';
import fc from 'fast-check';
import type { Dimensions } from '../../src/image/types.ts';
import { type ComposePlan, type Image, loadKernels } from './kernelsAddon.ts';
import { copy, type Pixel, paint, pixel, random, whole } from './kernelsImages.ts';

const kernels = loadKernels();

/** Composes in a buffer of exactly the required size. */
function compose(image: Image, plan: ComposePlan, threads = 1) {
  const buffer = new Uint8Array(Math.max(image.data.length, plan.width * plan.height * 4)).fill(0xa5);
  buffer.set(image.data);
  const { box, opaque } = kernels.composeCanvas(buffer, image.width, plan, threads);
  const data = buffer.subarray(0, plan.width * plan.height * 4);
  const canvas: Image = { data, width: plan.width, height: plan.height, stride: plan.width * 4 };
  return { canvas, box, opaque };
}

const identity = (image: Image): ComposePlan => ({
  width: image.width,
  height: image.height,
  source: whole(image),
  target: whole(image),
});

/** A soft disc in noise colours: alpha 0 and RGB 0 outside, 255 inside, a rim between. */
function disc(width: number, height: number, seed = 1): Image {
  const next = random(seed);
  const byte = () => Math.floor(next() * 256);
  return paint(width, height, (x, y) => {
    const distance = Math.hypot((x + 0.5) / width - 0.5, (y + 0.5) / height - 0.5);
    const alpha = Math.round(255 * Math.min(1, Math.max(0, (0.35 - distance) * 12 + 0.5)));
    return alpha === 0 ? [0, 0, 0, 0] : [byte(), byte(), byte(), alpha];
  });
}

/** Greatest difference of alpha and of premultiplied colour. */
function difference(a: Image, b: Image): number {
  let most = 0;
  for (let y = 0; y < a.height; y++) {
    for (let x = 0; x < a.width; x++) {
      const [p, q] = [pixel(a, x, y), pixel(b, x, y)];
      const [alphaP, alphaQ] = [p[3] ?? 0, q[3] ?? 0];
      most = Math.max(most, Math.abs(alphaP - alphaQ));
      for (const c of [0, 1, 2]) {
        most = Math.max(most, Math.abs((p[c] ?? 0) * alphaP - (q[c] ?? 0) * alphaQ) / 255);
      }
    }
  }
  return most;
}

/** Source, target and canvas; with `scale` every direction is reduced, enlarged or neither. */
const anyGeometry = fc
  .record({
    width: fc.integer({ min: 1, max: 60 }),
    height: fc.integer({ min: 1, max: 60 }),
    canvasWidth: fc.integer({ min: 1, max: 90 }),
    canvasHeight: fc.integer({ min: 1, max: 90 }),
    scale: fc.boolean(),
    parts: fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 8, maxLength: 8 }),
    seed: fc.nat(),
  })
  .map(({ width, height, canvasWidth, canvasHeight, scale, parts, seed }) => {
    const pick = (i: number, count: number) => Math.floor((parts[i] ?? 0) * count);
    const sourceWidth = 1 + pick(0, scale ? width : Math.min(width, canvasWidth));
    const sourceHeight = 1 + pick(1, scale ? height : Math.min(height, canvasHeight));
    const targetWidth = scale ? 1 + pick(2, canvasWidth) : sourceWidth;
    const targetHeight = scale ? 1 + pick(3, canvasHeight) : sourceHeight;
    const source = {
      left: pick(4, width - sourceWidth + 1),
      top: pick(5, height - sourceHeight + 1),
      width: sourceWidth,
      height: sourceHeight,
    };
    const target = {
      left: pick(6, canvasWidth - targetWidth + 1),
      top: pick(7, canvasHeight - targetHeight + 1),
      width: targetWidth,
      height: targetHeight,
    };
    const plan: ComposePlan = { width: canvasWidth, height: canvasHeight, source, target };
    const next = random(seed);
    const byte = () => Math.floor(next() * 256);
    return { plan, image: paint(width, height, () => [byte(), byte(), byte(), byte()]) };
  });

function reduced(part: Image, target: Dimensions): Image {
  const width = Math.min(part.width, target.width);
  const height = Math.min(part.height, target.height);
  if (width === part.width && height === part.height) return part;
  return { data: kernels.reduceScalar(part, width, height), width, height, stride: width * 4 };
}

function enlarged(part: Image, { width, height }: Dimensions): Image {
  if (width === part.width && height === part.height) return part;
  return { data: kernels.enlargeScalar(part, width, height), width, height, stride: width * 4 };
}

/** The effect of the geometry alone, pixel by pixel with the scalar reduction and enlargement. */
function placed(image: Image, { width, height, source, target }: ComposePlan): Image {
  const part: Image = {
    data: image.data.subarray(source.top * image.stride + source.left * 4),
    width: source.width,
    height: source.height,
    stride: image.stride,
  };
  const same = source.width === target.width && source.height === target.height;
  const scaled = same ? undefined : enlarged(reduced(part, target), target);
  return paint(width, height, (x, y): Pixel => {
    const [u, v] = [x - target.left, y - target.top];
    if (u < 0 || v < 0 || u >= target.width || v >= target.height) return [0, 0, 0, 0];
    const at = (v * target.width + u) * 4;
    const [r = 0, g = 0, b = 0, a = 0] = scaled ? scaled.data.subarray(at, at + 4) : pixel(part, u, v);
    return [r, g, b, a];
  });
}

test('crop, margin and position copy every byte of the visible part within one buffer', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyGeometry, ({ plan, image }) => {
        fc.pre(plan.source.width === plan.target.width && plan.source.height === plan.target.height);
        return Buffer.from(compose(image, plan).canvas.data).equals(placed(image, plan).data);
      }),
      { numRuns: 300 },
    ),
  );
});

test('any geometry is within 1 of its definition and clears the rest of the canvas', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyGeometry, ({ plan, image }) => {
        const across = Math.sign(plan.target.width - plan.source.width);
        const down = Math.sign(plan.target.height - plan.source.height);
        // Reduced in one direction and enlarged in the other: both round, and the cubic adds to the first error.
        const bound = across * down < 0 ? 2 : 1;
        return difference(compose(image, plan).canvas, placed(image, plan)) <= bound;
      }),
      { numRuns: 200 },
    ),
  );
});

const anyByte = fc.integer({ min: 0, max: 255 });
const anyLayers = fc.record({
  colour: fc.option(fc.tuple(anyByte, anyByte, anyByte, fc.constantFrom(0, 60, 255)), { nil: undefined }),
  image: fc.boolean(),
  shadow: fc.option(
    fc.record({
      opacity: fc.constantFrom(0.3, 1),
      sigma: fc.constantFrom(0.6, 3, 9),
      offsetX: fc.integer({ min: -9, max: 9 }),
      offsetY: fc.integer({ min: -9, max: 9 }),
      fade: fc.constantFrom(0, 4),
    }),
    { nil: undefined },
  ),
  seed: fc.nat(),
});

test('layers are within 1 of their definition, 4 with a shadow, after any geometry', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyGeometry, anyLayers, ({ plan, image }, layers) => {
        const next = random(layers.seed);
        const byte = () => Math.floor(next() * 256);
        const background = paint(
          plan.width,
          plan.height,
          () => [byte(), byte(), byte(), byte()],
          plan.width * 4 + 12,
        );
        const full: ComposePlan = {
          ...plan,
          ...(layers.colour ? { colour: layers.colour } : {}),
          ...(layers.image ? { background } : {}),
          ...(layers.shadow ? { shadow: layers.shadow } : {}),
        };
        const { canvas, box } = compose(image, full);
        const scalar = compose(image, plan);
        kernels.composeScalar(scalar.canvas, scalar.box, full);
        const same = JSON.stringify(box) === JSON.stringify(scalar.box);
        return same && difference(canvas, scalar.canvas) <= (layers.shadow ? 4 : 1);
      }),
      { numRuns: 300 },
    ),
  );
});

test('a composition has the same bytes for any number of threads', (t) => {
  const image = disc(301, 215);
  const plan: ComposePlan = {
    width: 333,
    height: 260,
    source: { left: 40, top: 30, width: 220, height: 160 },
    target: { left: 90, top: 70, width: 200, height: 131 },
    colour: [250, 40, 3, 120],
    shadow: { opacity: 0.5, sigma: 7, offsetX: 3, offsetY: 9, fade: 0 },
  };
  const larger = { ...plan, target: { left: 5, top: 1, width: 320, height: 250 } };
  for (const each of [plan, larger]) {
    const alone = compose(image, each, 0);
    for (const threads of [1, 3]) t.deepEqual(compose(image, each, threads), alone);
  }
});

test('opaque pixels of the subject keep their values under every layer', (t) => {
  const image = disc(120, 90);
  const { canvas, opaque } = compose(image, {
    ...identity(image),
    background: paint(120, 90, (x, y) => [x, y, 77, 255]),
    shadow: { opacity: 1, sigma: 5, offsetX: 0, offsetY: 4, fade: 0 },
  });
  t.true(opaque);
  for (let y = 0; y < 90; y++) {
    for (let x = 0; x < 120; x++) {
      if (pixel(image, x, y)[3] === 255) t.deepEqual(pixel(canvas, x, y), pixel(image, x, y));
    }
  }
});

test('without layers every pixel keeps its value, hidden colours included', (t) => {
  const next = random(4);
  const byte = () => Math.floor(next() * 256);
  const image = paint(600, 20, (x) => [byte(), byte(), byte(), x % 256]);
  const { canvas, box, opaque } = compose(copy(image), identity(image));
  t.deepEqual(canvas.data, image.data);
  t.deepEqual([box, opaque], [{ left: 1, top: 0, width: 599, height: 20 }, false]);
});

test('every alpha over no background keeps its value beside a shadow that does not reach it', (t) => {
  const image = paint(600, 40, (x, y) => (y < 20 ? [200, 100, 50, x % 256] : [0, 0, 0, 0]));
  const { canvas } = compose(image, {
    ...identity(image),
    shadow: { opacity: 0, sigma: 2, offsetX: 0, offsetY: 0, fade: 0 },
  });
  t.deepEqual(canvas.data, image.data);
});

test('a half transparent pixel mixes with the background in sRGB values', (t) => {
  const image = paint(1, 1, () => [200, 100, 0, 51]);
  const over = (colour: Pixel) => pixel(compose(image, { ...identity(image), colour }).canvas, 0, 0);
  t.deepEqual(over([100, 200, 255, 255]), [120, 180, 204, 255]);
  // alpha = 0.2 + 0.6 * 0.8 = 0.68; colour = (200 * 0.2 + 100 * 0.48) / 0.68
  t.deepEqual(over([100, 200, 255, 153]), [129, 171, 180, 173]);
  t.deepEqual(over([100, 200, 255, 0]), [200, 100, 0, 51]);
});

test('a shadow alone is black, its alpha is its strength, and RGB is 0 where nothing is', (t) => {
  const image = paint(200, 200, (x, y) =>
    x >= 50 && x < 150 && y >= 50 && y < 150 ? [255, 255, 255, 255] : [0, 0, 0, 0],
  );
  const { canvas, box, opaque } = compose(image, {
    ...identity(image),
    shadow: { opacity: 0.6, sigma: 6, offsetX: 20, offsetY: 20, fade: 0 },
  });
  t.deepEqual(box, { left: 50, top: 50, width: 100, height: 100 });
  t.false(opaque);
  t.deepEqual(pixel(canvas, 100, 100), [255, 255, 255, 255]);
  t.deepEqual(pixel(canvas, 5, 5), [0, 0, 0, 0]);
  // On the shadow's right edge: half of 0.6.
  const [r, g, b, alpha = 0] = pixel(canvas, 169, 120);
  t.deepEqual([r, g, b], [0, 0, 0]);
  t.true(alpha > 153 * 0.5 && alpha < 153 * 0.57, `${alpha}`);
});

test('the result is opaque exactly when every pixel is', (t) => {
  const image = disc(40, 30);
  t.false(compose(image, { ...identity(image), colour: [1, 2, 3, 254] }).opaque);
  t.true(compose(image, { ...identity(image), colour: [1, 2, 3, 255] }).opaque);
  const full = paint(9, 9, () => [1, 1, 1, 255]);
  t.true(compose(full, identity(full)).opaque);
  t.false(
    compose(full, { ...identity(full), width: 10, target: { left: 1, top: 0, width: 9, height: 9 } }).opaque,
  );
});

test('an image without a subject composes to its background', (t) => {
  const image = paint(10, 10, () => [0, 0, 0, 0]);
  const { canvas, box, opaque } = compose(image, {
    ...identity(image),
    colour: [9, 8, 7, 255],
    shadow: { opacity: 1, sigma: 2, offsetX: 0, offsetY: 0, fade: 0 },
  });
  t.deepEqual([box.width, box.height, opaque], [0, 0, true]);
  t.deepEqual(pixel(canvas, 4, 4), [9, 8, 7, 255]);
});
