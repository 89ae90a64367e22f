import test from 'ava';
import { type Image, loadKernels } from './kernelsAddon.ts';

const kernels = loadKernels();

type Colour = readonly [number, number, number];

const SIDE = 256;
const white: Colour = [255, 255, 255];
const ink: Colour = [20, 20, 20];
const blue: Colour = [90, 215, 240];

/** A square image whose colours depend on the distance from its middle. */
function rings(colourAt: (radius: number) => Colour, side = SIDE): Image {
  const data = new Uint8Array(side * side * 4);
  for (let i = 0; i < side * side; i++) {
    const radius = Math.hypot((i % side) + 0.5 - side / 2, Math.floor(i / side) + 0.5 - side / 2);
    data.set([...colourAt((radius * SIDE) / side), 255], i * 4);
  }
  return { data, width: side, height: side, stride: side * 4 };
}

/** What a network finds of the outline between the radii 90 and 100, which may have a gap. */
const outline = (gap = false): Float32Array =>
  Float32Array.from({ length: SIDE * SIDE }, (_, i) => {
    const [x, y] = [(i % SIDE) + 0.5 - SIDE / 2, Math.floor(i / SIDE) + 0.5 - SIDE / 2];
    const radius = Math.hypot(x, y);
    return radius >= 90 && radius < 100 && !(gap && x > 0 && Math.abs(y) < 3) ? 0.99 : 0.01;
  });

function restored(image: Image, p = outline(), threads = 1): Float32Array {
  const changed = p.slice();
  kernels.restoreColouredHoles(changed, SIDE, image, threads);
  return changed;
}

/** The values along the row through the middle, at these distances to the right of it. */
const along = (p: Float32Array, ...distances: readonly number[]) =>
  distances.map((distance) => p[(SIDE / 2) * SIDE + SIDE / 2 + distance]);

const drawn = (inside: Colour, outside = white) =>
  rings((radius) => (radius >= 100 ? outside : radius >= 90 ? ink : inside));

test('a drawing that is reduced to its outline gets its coloured inside back', (t) => {
  for (const side of [SIDE, 3 * SIDE, SIDE / 2]) {
    const p = restored({ ...rings((radius) => (radius >= 100 ? white : radius >= 90 ? ink : blue), side) });
    t.true(
      along(p, 0, 40, 80).every((value) => value === 1),
      String(side),
    );
    t.deepEqual(along(p, 95, 110), along(outline(), 95, 110));
  }
  t.is(along(restored(drawn(white, blue)), 40)[0], 1);
});

test('an opening that shows the background stays open, its soft rim too', (t) => {
  const letter = outline();
  t.deepEqual(restored(drawn(white), letter), letter);
  t.deepEqual(restored(drawn(blue, blue), letter), letter);
  // The outline's colour mixes with the background over three network pixels.
  const soft = rings((radius) => {
    const share = Math.min(1, Math.max(0, (radius - 86) / 3));
    return radius >= 100
      ? white
      : (white.map((value, c) => value + share * ((blue[c] ?? 0) - value)) as unknown as Colour);
  });
  t.deepEqual(restored(soft, letter), letter);
});

test('a rim out of focus, of which the network believes as much, does not count as coloured', (t) => {
  const share = (radius: number) => Math.min(1, Math.max(0, (radius - 50) / 40));
  const focused = rings((radius) => {
    if (radius >= 100) return white;
    return white.map((value, c) => value + share(radius) * ((blue[c] ?? 0) - value)) as unknown as Colour;
  });
  const p = outline().map((value, i) => {
    const radius = Math.hypot((i % SIDE) + 0.5 - SIDE / 2, Math.floor(i / SIDE) + 0.5 - SIDE / 2);
    return radius < 90 ? share(radius) : value;
  });
  t.deepEqual(restored(focused, p), p);
});

test('a shadow on the background stays as soft as it was, whatever the colour of the background', (t) => {
  for (const background of [white, blue, [60, 120, 30]] as const) {
    const shaded = rings((radius) => {
      if (radius >= 90 && radius < 100) return ink;
      const shade = radius < 90 ? 0.4 + radius / 150 : 1;
      return background.map((value) => Math.round(value * shade)) as unknown as Colour;
    });
    t.deepEqual(restored(shaded), outline());
  }
});

test('a coloured part inside one that is restored is restored, a white one stays as it was', (t) => {
  const p = restored(
    rings((radius) => (radius < 30 ? white : radius < 90 ? blue : radius < 100 ? ink : white)),
  );
  t.is(along(p, 60)[0], 1);
  t.is(along(p, 10)[0], along(outline(), 10)[0]);
});

test('nothing changes where what is open is coloured too: behind letters on a card, through a gap of the outline', (t) => {
  const red: Colour = [230, 30, 30];
  const card = rings((radius) => (radius >= 90 && radius < 100 ? white : radius < 115 ? red : white));
  t.deepEqual(restored(card), outline());
  t.deepEqual(restored(drawn(blue), outline(true)), outline(true));
});

test('a coloured spot narrower than 1/64 of the side stays as it was', (t) => {
  const spot = (wide: number) =>
    rings((radius) => (radius < wide / 2 ? blue : radius >= 90 && radius < 100 ? ink : white));
  t.deepEqual(restored(spot(4)), outline());
  t.is(along(restored(spot(8)), 0)[0], 1);
});

test('the number of threads does not change the result', (t) => {
  t.deepEqual(restored(drawn(blue), outline(), 3), restored(drawn(blue), outline(), 0));
});

test('a border is flat if each of its pixels is within 12 of the first', (t) => {
  for (const [at, channel] of [
    [0, 0],
    [SIDE - 1, 1],
    [SIDE * 100, 2],
    [SIDE * SIDE - 1, 3],
  ] as const) {
    const image = rings(() => [100, 100, 100]);
    const value = image.data[at * 4 + channel] ?? 0;
    image.data[at * 4 + channel] = value - 12;
    t.true(kernels.hasFlatBorder(image));
    image.data[at * 4 + channel] = value - 13;
    t.false(kernels.hasFlatBorder(image));
  }
  const inside = rings((radius) => (radius < 120 ? ink : white));
  t.true(kernels.hasFlatBorder(inside));
});
