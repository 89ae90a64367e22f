import test from 'ava';
import fc from 'fast-check';
import { anyGuide } from './guides.ts';
import { type Guide, loadKernels, SCALAR } from './kernelsAddon.ts';
import { paint, pixel, random } from './kernelsImages.ts';

const kernels = loadKernels();

const bytes = (a: Float32Array) => Buffer.from(a.buffer, a.byteOffset, a.byteLength);

test('a corrected output is bit-equal to the scalar version, within 0..1, for any number of threads', (t) => {
  let changed = 0;
  t.notThrows(() =>
    fc.assert(
      fc.property(anyGuide, ({ guide, p }) => {
        const scalar = kernels.sampleColours(guide, p, SCALAR);
        if (scalar.alpha.some((value, i) => Math.abs(value - (p[i] ?? 0)) > 0.01)) changed++;
        return (
          [0, 1, 3].every((threads) => {
            const result = kernels.sampleColours(guide, p, threads);
            return (['alpha', 'sampleConfidence', 'sampledAlpha'] as const).every((plane) =>
              bytes(result[plane]).equals(bytes(scalar[plane])),
            );
          }) &&
          [...scalar.alpha, ...scalar.sampleConfidence, ...scalar.sampledAlpha].every(
            (value) => value >= 0 && value <= 1,
          )
        );
      }),
      { numRuns: 400 },
    ),
  );
  t.true(changed > 20, `${changed}`);
});

type Colour = readonly [number, number, number];

const [width, height] = [96, 64];
const PALE: Colour = [0.85, 0.75, 0.65];
const GREEN: Colour = [0.1, 0.2, 0.08];

/** A body up to column 40 with thin hairs to its right: `truth` of each network pixel. */
const hairs = (x: number, y: number) => (x < 40 ? 1 : x < 60 && y % 7 === 3 ? 0.3 : 0);
/** The output of a typical network: hairs nearly solid, and too wide. */
const solid = (x: number, y: number) => (x < 40 ? 1 : x < 60 && Math.abs((y % 7) - 3) <= 1 ? 0.85 : 0);

type Map = (x: number, y: number) => number;

function guideOf(output: Map, colour: (x: number, y: number) => Colour) {
  const each = <T>(value: (x: number, y: number) => T) =>
    Array.from({ length: width * height }, (_, i) => value(i % width, Math.floor(i / width)));
  const colours = each(colour);
  const planes = Float32Array.from([0, 1, 2].flatMap((c) => colours.map((each) => each[c] ?? 0)));
  const guide: Guide = { planes, width, height, scale: 1, offset: 0 };
  return { guide, p: Float32Array.from(each(output)) };
}

const mixed =
  (alpha: Map, fore: Colour, back: Colour) =>
  (x: number, y: number): Colour => {
    const a = alpha(x, y);
    const of = (c: 0 | 1 | 2) => a * fore[c] + (1 - a) * back[c];
    return [of(0), of(1), of(2)];
  };

/** Mean distance from `truth` outside the body. */
function error(alpha: Float32Array, truth: Map): number {
  let [sum, n] = [0, 0];
  for (let y = 4; y < height - 4; y++) {
    for (let x = 44; x < 58; x++, n++) sum += Math.abs((alpha[y * width + x] ?? 0) - truth(x, y));
  }
  return sum / n;
}

test('hairs that the network draws nearly a network pixel wide get the alpha of their colour', (t) => {
  const { guide, p } = guideOf(solid, mixed(hairs, PALE, GREEN));
  const { alpha } = kernels.sampleColours(guide, p, 2);
  t.log(error(p, hairs), error(alpha, hairs));
  t.true(error(p, hairs) > 0.25);
  t.true(error(alpha, hairs) < 0.05);
});

test("hairs whose colour is no mixture of body and background keep the network's alpha", (t) => {
  const red: Colour = [0.7, 0.05, 0.5];
  const own = (x: number, y: number) =>
    x >= 40 && x < 60 && y % 7 === 3 ? red : mixed(hairs, PALE, GREEN)(x, y);
  const only = (x: number, y: number) => (x >= 40 && x < 60 && y % 7 === 3 ? 0.9 : hairs(x, y));
  const { guide, p } = guideOf(only, own);
  t.true(error(kernels.sampleColours(guide, p, 2).alpha, only) < 0.01);
});

test("where body and background differ by less than a colour's noise, the network's alpha is nearly kept", (t) => {
  const like: Colour = [GREEN[0] + 0.03, GREEN[1] + 0.03, GREEN[2]]; // 0.042 apart; the noise is 0.055
  const { guide, p } = guideOf(solid, mixed(hairs, like, GREEN));
  const { alpha } = kernels.sampleColours(guide, p, 2);
  const whole = error(
    Float32Array.from(p, (_, i) => hairs(i % width, Math.floor(i / width))),
    solid,
  );
  t.log(error(alpha, solid), whole);
  t.true(error(alpha, solid) < 0.15 * whole);
});

test('a wide, half confident part of the body that is darker than the rest is not thinned', (t) => {
  const fur: Colour = [0.22, 0.16, 0.12];
  const dusk: Colour = [0.08, 0.08, 0.1];
  const body: Map = (x, y) => (y < 8 ? 0 : x < 30 ? 1 : 0.85);
  const { guide, p } = guideOf(body, (x, y) => (y < 8 ? dusk : x < 30 ? PALE : fur));
  const { alpha, sampleConfidence } = kernels.sampleColours(guide, p, 2);
  for (let y = 12; y < height; y++) {
    for (let x = 50; x < width; x++) {
      const value = alpha[y * width + x] ?? 0;
      if (value < 0.7) return t.fail(`${value} at ${x}, ${y}`);
      // 20 network pixels from certain background it is unchanged.
      if (y >= 28) t.true(value === p[y * width + x] && sampleConfidence[y * width + x] === 0, `${x}, ${y}`);
    }
  }
  return undefined;
});

test("what is faint over objects of the body's colour stays faint", (t) => {
  const body: Map = (x, y) => (x < 30 && y < 30 ? 1 : x > 50 ? 0.15 : 0);
  // Pale stalks in what is faint, which do not belong to the subject.
  const stalks: Map = (x, y) => (x < 30 && y < 30 ? 1 : x > 50 && y % 5 < 2 ? 1 : 0);
  const { guide, p } = guideOf(body, mixed(stalks, PALE, GREEN));
  const { alpha } = kernels.sampleColours(guide, p, 2);
  t.true(p.every((value, i) => i % width < 52 || (alpha[i] ?? 1) <= value));
  t.true(
    alpha.some((value, i) => i % width > 60 && value < 0.05),
    'what is green is taken away',
  );
});

test('network pixels well inside and well outside are unchanged, and so is an output without either', (t) => {
  const next = random(7);
  const { guide, p } = guideOf(solid, () => [next(), next(), next()]);
  const { alpha } = kernels.sampleColours(guide, p, 2);
  for (let y = 0; y < height; y++) {
    for (const x of [0, 20, 36, 62, 80, 95]) t.is(alpha[y * width + x], x < 40 ? 1 : 0, `${x} ${y}`);
  }
  const ambiguous = p.map((value) => 0.1 + 0.5 * value);
  t.deepEqual(kernels.sampleColours(guide, ambiguous, 2).alpha, ambiguous);
  const onlyBack = p.map((value) => 0.9 * value);
  t.deepEqual(kernels.sampleColours(guide, onlyBack, 2).alpha, onlyBack);
});

test("the foreground colour of corrected hairs is nearer to the body's than their corrected alpha alone would give", (t) => {
  // Colours this near to each other are believed in part.
  const brown: Colour = [0.25, 0.25, 0.2];
  const colour = mixed(hairs, brown, GREEN);
  const { guide, p } = guideOf(solid, colour);
  const { alpha, sampleConfidence, sampledAlpha } = kernels.sampleColours(guide, p, 2);
  const [roi, scale] = [{ left: 0, top: 0, width: 2 * width, height: 2 * height }, 2];
  const distance = (said: Float32Array) => {
    const image = paint(roi.width, roi.height, (x, y) => {
      const [r, g, b] = colour(Math.floor(x / scale), Math.floor(y / scale)).map((c) => Math.round(c * 255));
      return [r ?? 0, g ?? 0, b ?? 0, 255];
    });
    kernels.refine(image, { ...guide, sampleConfidence, sampledAlpha: said }, alpha, roi, 'keep', 2);
    let [sum, n] = [0, 0];
    for (let y = 3 * scale; y < roi.height; y += 7 * scale, n++) {
      const [r = 0, g = 0, b = 0] = pixel(image, 50 * scale, y);
      sum += Math.hypot(r / 255 - brown[0], g / 255 - brown[1], b / 255 - brown[2]);
    }
    return sum / n;
  };
  const [once, twice] = [distance(alpha), distance(sampledAlpha)];
  t.log(once, twice);
  t.true(twice < 0.9 * once, `${twice} ${once}`);
});

test("a request gets thin hairs, light ones, where the network's are solid", (t) => {
  const colour = mixed(hairs, PALE, GREEN);
  const { guide, p } = guideOf(solid, colour);
  const byte = (value: number) => Math.round(value * 255);
  const image = paint(width, height, (x, y) => {
    const [r, g, b] = colour(x, y);
    return [byte(r), byte(g), byte(b), 255];
  });
  kernels.refineMatte(image, guide, p, 2);
  let [given, alpha, light, n] = [0, 0, 0, 0];
  for (let y = 10; y < height - 8; y += 7) {
    for (let x = 44; x < 58; x++, n++) {
      const [r = 0, , , a = 0] = pixel(image, x, y);
      given +=
        p[Math.floor((y * guide.height) / height) * guide.width + Math.floor((x * guide.width) / width)] ?? 0;
      alpha += a / 255;
      light += r / 255;
    }
  }
  t.log(given / n, alpha / n, light / n, colour(50, 10)[0]);
  t.true(given / n > 0.8, 'solid');
  t.true(alpha / n < 0.5, 'thin');
  t.true(light / n > 2 * colour(50, 10)[0], "of the body's colour");
});
