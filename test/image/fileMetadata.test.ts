import test from 'ava';
import sharp from 'sharp';
import { tagJpeg, tagWebp, usableRgbProfile } from '../../src/image/fileMetadata.ts';
import { jpegSegments, linearGrayProfile, padProfile } from '../fixtures/bytes.ts';
import { p3Profile } from '../fixtures/files.ts';
import { difference } from '../fixtures/raster.ts';
import { drawScene } from '../fixtures/scene.ts';

const { foreground, width, height } = drawScene('glass', 75, 51);
const size = { width, height };
const image = () => sharp(foreground, { raw: { ...size, channels: 4 } });
const pixels = (file: Buffer) => sharp(file, { ignoreIcc: true }).raw().toBuffer();
const density = { x: 11811, y: 11811 };

for (const extra of [0, 1, 65_039, 65_040, 200_000]) {
  test(`a JPEG gets a profile ${extra} bytes longer than P3's, the resolution and the same pixels`, async (t) => {
    const icc = padProfile(await p3Profile(), extra);
    const jpeg = await image().jpeg({ quality: 90 }).toBuffer();
    const tagged = tagJpeg(jpeg, { icc, density });
    const metadata = await sharp(tagged).metadata();
    t.deepEqual(metadata.icc, icc);
    t.is(metadata.density, 300);
    t.is(difference(await pixels(tagged), await pixels(jpeg)).max, 0);

    const segments = jpegSegments(tagged);
    t.is(segments[0]?.marker, 0xe0, 'JFIF comes first');
    const parts = segments.filter(({ marker }) => marker === 0xe2);
    t.is(parts.length, Math.ceil(icc.length / 65_519));
    t.deepEqual(
      parts.map(({ body }) => [body.readUInt8(12), body.readUInt8(13)]),
      parts.map((_, i) => [i + 1, parts.length]),
    );
  });
}

test('an existing JFIF segment is replaced by the resolution, and kept in front of a profile', async (t) => {
  const jpeg = await image().jpeg().toBuffer();
  const low = tagJpeg(jpeg, { density: { x: 2835, y: 2835 } });
  const high = tagJpeg(low, { density });
  t.is((await sharp(high).metadata()).density, 300);
  t.is(high.length, low.length);
  const profiled = tagJpeg(low, { icc: await p3Profile() });
  t.deepEqual(
    jpegSegments(profiled)
      .slice(0, 2)
      .map(({ marker }) => marker),
    [0xe0, 0xe2],
  );
  t.is((await sharp(profiled).metadata()).density, 72);
});

test('horizontal and vertical resolutions that differ, and those out of range', async (t) => {
  const jpeg = await image().jpeg().toBuffer();
  const jfif = (x: number, y: number) => {
    const body = jpegSegments(tagJpeg(jpeg, { density: { x, y } }))[0]?.body ?? Buffer.alloc(14);
    return [body.readUInt8(7), body.readUInt16BE(8), body.readUInt16BE(10)];
  };
  t.deepEqual(jfif(11811, 5906), [1, 300, 150]);
  t.deepEqual(jfif(1, 0x7fffffff), [1, 1, 0xffff]);
});

for (const [name, encode] of [
  ['lossy with alpha', () => image().webp({ quality: 80 })],
  ['lossy, opaque', () => image().removeAlpha().webp({ quality: 80 })],
  ['lossless with alpha', () => image().webp({ lossless: true, exact: true })],
  ['lossless, opaque', () => image().removeAlpha().webp({ lossless: true })],
] as const) {
  for (const extra of [0, 1]) {
    test(`a WebP (${name}) gets a profile of ${extra ? 'odd' : 'even'} length and the same pixels`, async (t) => {
      const icc = padProfile(await p3Profile(), extra);
      const webp = await encode().toBuffer();
      const tagged = tagWebp(webp, { icc }, size);
      const [before, after] = [await sharp(webp).metadata(), await sharp(tagged).metadata()];
      t.deepEqual(after.icc, icc);
      t.is(after.hasAlpha, before.hasAlpha);
      t.is(after.width, width);
      t.is(after.height, height);
      t.is(difference(await pixels(tagged), await pixels(webp)).max, 0);
      t.is(tagged.readUInt32LE(4) + 8, tagged.length);
    });
  }
}

test('without profile and resolution the bytes are unchanged', async (t) => {
  const [jpeg, webp] = [await image().jpeg().toBuffer(), await image().webp().toBuffer()];
  t.is(tagJpeg(jpeg, {}), jpeg);
  t.is(tagWebp(webp, { density }, size), webp);
});

test('only complete profiles for RGB of at most 1 MB are usable', async (t) => {
  const icc = await p3Profile();
  t.is(usableRgbProfile(icc), icc);
  t.is(usableRgbProfile(linearGrayProfile()), undefined);
  t.is(usableRgbProfile(icc.subarray(0, 200)), undefined);
  t.is(usableRgbProfile(icc.subarray(0, 100)), undefined);
  t.is(usableRgbProfile(Buffer.from(icc).fill(0, 36, 40)), undefined);
  const largest = padProfile(icc, 2 ** 20 - icc.length);
  t.is(usableRgbProfile(largest), largest);
  t.is(usableRgbProfile(padProfile(icc, 2 ** 20 - icc.length + 1)), undefined);
});
