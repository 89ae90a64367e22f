import test from 'ava';
import sharp from 'sharp';
import { tagWebp } from '../../src/image/fileMetadata.ts';
import { fromSrgb } from '../../src/image/profileConversion.ts';
import { displayP3, PRIMARIES, rgbProfile, type Tone } from '../fixtures/icc.ts';

const levels = [0, 8, 16, 32, 64, 96, 128, 160, 192, 224, 255];
const grid = levels.flatMap((r) => levels.flatMap((g) => levels.map((b) => [r, g, b, 255])));
const size = { width: levels.length ** 2, height: levels.length };

/** Result of littlecms, in libvips, for pixels with this profile: sRGB colours. */
async function readBack(data: Uint8Array, icc: Buffer): Promise<Buffer> {
  const webp = await sharp(data, { raw: { ...size, channels: 4 } })
    .webp({ lossless: true, exact: true })
    .toBuffer();
  return sharp(tagWebp(webp, { icc }, size))
    .toColourspace('srgb')
    .ensureAlpha()
    .raw()
    .toBuffer();
}

const srgbParameters = [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045];
const tones: Readonly<Record<string, Tone>> = {
  'one gamma': { gamma: 2.19921875 },
  'a table': { table: Array.from({ length: 1024 }, (_, i) => (i / 1023) ** 1.8) },
  'a short table': { table: [0, 0.1, 0.3, 1] },
  'shape 0': { shape: 0, parameters: [2.2] },
  'shape 1': { shape: 1, parameters: [2, 1.1, -0.1] },
  'shape 3': { shape: 3, parameters: srgbParameters },
  'shape 4': { shape: 4, parameters: [...srgbParameters, 0, 0] },
};

for (const [name, tone] of Object.entries(tones)) {
  test(`Adobe's primaries with ${name}: littlecms recovers the sRGB colours from the converted ones`, async (t) => {
    const icc = rgbProfile(PRIMARIES.adobe, tone);
    const converted = Uint8Array.from(grid.flat());
    await fromSrgb(icc)?.raster({ data: converted, ...size });
    const back = await readBack(converted, icc);
    let worst = 0;
    let sum = 0;
    for (const [i, value] of grid.flat().entries()) {
      const difference = Math.abs((back[i] ?? 0) - value);
      worst = Math.max(worst, difference);
      sum += difference;
    }
    const untouched = await readBack(Uint8Array.from(grid.flat()), icc);
    const before = grid.flat().reduce((all, value, i) => all + Math.abs((untouched[i] ?? 0) - value), 0);
    t.log(
      `worst ${worst}, mean ${(sum / grid.flat().length).toFixed(3)}, without ${(before / grid.flat().length).toFixed(1)}`,
    );
    // 8 bits on both sides; curves much steeper than sRGB's in the dark have few values there.
    t.true(sum / grid.flat().length < 1);
    t.true(sum < before / 4);
  });
}

test('Display P3: known colours', async (t) => {
  const conversion = fromSrgb(await displayP3());
  const known = [
    [
      [255, 0, 0],
      [234, 51, 35],
    ],
    [
      [0, 255, 0],
      [117, 251, 76],
    ],
    [
      [0, 0, 255],
      [0, 0, 245],
    ],
    [
      [255, 255, 255],
      [255, 255, 255],
    ],
    [
      [0, 0, 0],
      [0, 0, 0],
    ],
    [
      [128, 128, 128],
      [128, 128, 128],
    ],
  ] as const;
  for (const [srgb, wanted] of known) {
    const got = conversion?.colour(srgb) ?? [0, 0, 0];
    for (const [i, value] of wanted.entries())
      t.true(Math.abs((got[i] ?? -9) - value) <= 1, `${srgb}: ${got}, wanted ${wanted}`);
  }
});

test('alpha is unchanged, and so is white in spaces whose primaries are rounded', async (t) => {
  const conversion = fromSrgb(rgbProfile(PRIMARIES.adobe, { gamma: 2.2 }));
  const data = Uint8Array.of(255, 255, 255, 3, 255, 0, 0, 0, 1, 2, 3, 255);
  await conversion?.raster({ data, width: 3, height: 1 });
  t.deepEqual([...data.subarray(0, 4)], [255, 255, 255, 3]);
  t.deepEqual([data[7], data[11]], [0, 255]);
});

test('sRGB in any wording needs no conversion', (t) => {
  t.is(fromSrgb(rgbProfile(PRIMARIES.srgb, { shape: 3, parameters: srgbParameters })), undefined);
  const table = Array.from({ length: 1024 }, (_, i) => {
    const v = i / 1023;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  t.is(fromSrgb(rgbProfile(PRIMARIES.srgb, { table })), undefined);
});

test('profiles damaged in any byte or length need none either', (t) => {
  const icc = rgbProfile(PRIMARIES.adobe, { table: [0, 0.2, 1] });
  for (let length = 0; length < icc.length; length++) t.notThrows(() => fromSrgb(icc.subarray(0, length)));
  for (let at = 128; at < icc.length; at++) {
    for (const value of [0, 0x7f, 0xff]) {
      const damaged = Buffer.from(icc);
      damaged[at] = value;
      t.notThrows(() => fromSrgb(damaged)?.colour([1, 128, 255]), `byte ${at}`);
    }
  }
  const lookup = Buffer.from(icc);
  lookup.write('A2B0', 132 + 12 * 3, 'latin1');
  t.is(fromSrgb(lookup), undefined, 'tables are left alone');
});

test('a curve with millions of entries is not read', (t) => {
  const entries = (count: number) => Array.from({ length: count }, (_, i) => (i / (count - 1)) ** 2.2);
  t.truthy(fromSrgb(rgbProfile(PRIMARIES.adobe, { table: entries(4096) })));
  t.is(fromSrgb(rgbProfile(PRIMARIES.adobe, { table: entries(4097) })), undefined);
});

test('an abort ends the conversion', async (t) => {
  const conversion = fromSrgb(rgbProfile(PRIMARIES.adobe, { gamma: 2.2 }));
  const [width, height] = [1000, 1000];
  const leave = new AbortController();
  const work = conversion?.raster({ data: new Uint8Array(width * height * 4), width, height }, leave.signal);
  leave.abort(new Error('gone'));
  await t.throwsAsync(async () => work, { message: 'gone' });
});
