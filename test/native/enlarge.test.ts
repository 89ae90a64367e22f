import test from 'ava';
import fc from 'fast-check';
import { type Image, loadKernels } from './kernelsAddon.ts';
import { anyImage, difference, packed, paint, random } from './kernelsImages.ts';

const kernels = loadKernels();

/** Enlarges in a buffer of exactly the required size. */
function enlarge(image: Image, width: number, height: number, threads = 1): Uint8Array {
  const buffer = new Uint8Array(width * height * 4).fill(0xa5);
  buffer.set(packed(image));
  const row = image.width * 4;
  kernels.enlargeInPlace(buffer, image.width, image.height, width, height, threads, 0, row);
  return buffer;
}

/** Enlarges an image that lies in a larger one, from column `left` and row `top` on. */
function enlargePart(image: Image, width: number, height: number, left: number, top: number, right: number) {
  const row = image.width * 4;
  const stride = (left + right) * 4 + row;
  const buffer = new Uint8Array(Math.max(width * height * 4, stride * (top + image.height))).fill(0x5a);
  const offset = top * stride + left * 4;
  const rows = packed(image);
  for (let y = 0; y < image.height; y++) {
    buffer.set(rows.subarray(y * row, (y + 1) * row), offset + y * stride);
  }
  kernels.enlargeInPlace(buffer, image.width, image.height, width, height, 3, offset, stride);
  return buffer.subarray(0, width * height * 4);
}

const anyEnlargement = (more: number, maxWidth = 60, maxHeight = 60) =>
  fc.record({
    image: anyImage(maxWidth, maxHeight),
    across: fc.integer({ min: 0, max: more }),
    down: fc.integer({ min: 0, max: more }),
  });

test('enlargement is within 1 of its definition for any sizes and alpha', (t) => {
  for (const [more, side] of [
    [150, 40],
    [3, 60],
    [150, 2],
  ] as const) {
    t.notThrows(() =>
      fc.assert(
        fc.property(anyEnlargement(more, side, side), ({ image, across, down }) => {
          const [width, height] = [image.width + across, image.height + down];
          return difference(enlarge(image, width, height), kernels.enlargeScalar(image, width, height)) <= 1;
        }),
        { numRuns: 60 },
      ),
    );
  }
});

test('enlargement never reads what it has overwritten: tall images, hardly larger', (t) => {
  const next = random(3);
  const byte = () => next() * 256;
  const image = paint(37, 900, () => [byte(), byte(), byte(), 255]);
  for (const [width, height] of [
    [37, 901],
    [38, 900],
    [38, 901],
    [38, 4000],
    [90, 901],
  ] as const) {
    const worst = difference(enlarge(image, width, height, 3), kernels.enlargeScalar(image, width, height));
    t.true(worst <= 1, `${width}x${height}: ${worst}`);
  }
});

test('enlargement of a part of an image does not depend on its position in the buffer', (t) => {
  const place = fc.record({
    left: fc.integer({ min: 0, max: 40 }),
    top: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 400 })),
    right: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constant(900)),
    across: fc.constantFrom(3, 30, 400),
    down: fc.constantFrom(3, 30, 1000),
  });
  const any = fc.oneof(anyEnlargement(1000, 60, 400), anyEnlargement(1000, 6, 6));
  t.notThrows(() =>
    fc.assert(
      fc.property(any, place, ({ image, across, down }, at) => {
        const [width, height] = [image.width + (across % at.across), image.height + (down % at.down)];
        const part = enlargePart(image, width, height, at.left, at.top, at.right);
        return Buffer.from(part).equals(enlarge(image, width, height));
      }),
      { numRuns: 200 },
    ),
  );
});

test('enlargement packs rows whose stride is too large to keep', (t) => {
  const next = random(4);
  const image = paint(5, 8, () => [next() * 256, next() * 256, next() * 256, next() * 256]);
  t.true(Buffer.from(enlargePart(image, 6, 1000, 0, 0, 900)).equals(enlarge(image, 6, 1000)));
});

test('enlargement has the same bytes for any number of threads', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(anyEnlargement(300), ({ image, across, down }) => {
        const [width, height] = [image.width + across, image.height + down];
        const alone = Buffer.from(enlarge(image, width, height, 0));
        return [1, 3].every((threads) => alone.equals(enlarge(image, width, height, threads)));
      }),
      { numRuns: 40 },
    ),
  );
});

test('enlargement keeps a flat colour exactly, opaque or not, from a single pixel up', (t) => {
  for (const alpha of [255, 128, 1]) {
    for (const side of [1, 2, 37]) {
      const image = paint(side, side, () => [201, 3, 255, alpha]);
      const expected = paint(613, 407, () => [201, 3, 255, alpha]);
      t.true(Buffer.from(enlarge(image, 613, 407)).equals(expected.data), `${side} pixels, alpha ${alpha}`);
    }
  }
});

test('enlargement to the same size changes nothing, hidden colours included', (t) => {
  const image = paint(7, 5, (x, y) => [x, y, 99, x === y ? 0 : 200]);
  t.deepEqual(enlarge(image, 7, 5), image.data);
});

test('enlargement is the Catmull-Rom cubic with the border repeated', (t) => {
  const next = random(9);
  const line = Array.from({ length: 23 }, () => Math.floor(next() * 256));
  const image = paint(23, 1, (x) => [line[x] ?? 0, 0, 0, 255]);
  const at = (i: number) => line[Math.min(22, Math.max(0, i))] ?? 0;
  const width = 200;
  const out = enlarge(image, width, 1);
  for (let i = 0; i < width; i++) {
    const u = ((i + 0.5) * 23) / width - 0.5;
    const [k, t1] = [Math.floor(u), u - Math.floor(u)];
    const [p0, p1, p2, p3] = [at(k - 1), at(k), at(k + 1), at(k + 2)];
    // A Hermite spline whose slope is half the difference of the neighbours.
    const value =
      p1 + (t1 / 2) * (p2 - p0 + t1 * (2 * p0 - 5 * p1 + 4 * p2 - p3 + t1 * (3 * p1 - p0 - 3 * p2 + p3)));
    const expected = Math.min(255, Math.max(0, value));
    t.true(Math.abs((out[i * 4] ?? 0) - expected) <= 0.5001, `${i}: ${out[i * 4]} for ${expected}`);
  }
});

test('enlargement leaves no ring: around a hard square alpha is 0, inside 255, corners included', (t) => {
  const inside = (x: number, y: number) => x >= 4 && x < 12 && y >= 4 && y < 12;
  const image = paint(16, 16, (x, y) => (inside(x, y) ? [40, 200, 90, 255] : [255, 0, 255, 0]));
  const by = 9;
  const out = enlarge(image, 16 * by, 16 * by);
  let soft = 0;
  for (let y = 0; y < 16 * by; y++) {
    for (let x = 0; x < 16 * by; x++) {
      const [r, g, b, a = 0] = out.subarray((y * 16 * by + x) * 4, (y * 16 * by + x) * 4 + 4);
      if (a === 0) {
        if (r !== 0 || g !== 0 || b !== 0) return t.fail(`hidden colour ${r} ${g} ${b} at ${x}, ${y}`);
      } else if (r !== 40 || g !== 200 || b !== 90) {
        return t.fail(`${r} ${g} ${b} under alpha ${a} at ${x}, ${y}`);
      }
      // In pixels of the image; 8 is the centre of the square, 4 half its side.
      const distance = Math.max(Math.abs((x + 0.5) / by - 8), Math.abs((y + 0.5) / by - 8)) - 4;
      if (distance > 0.5 && a !== 0) return t.fail(`alpha ${a} outside at ${x}, ${y}`);
      if (distance < -0.5 && a !== 255) return t.fail(`alpha ${a} inside at ${x}, ${y}`);
      if (a > 0 && a < 255) soft++;
    }
  }
  t.true(soft > 4 * 8 * by, `${soft} pixels of the edge are soft`);
});
