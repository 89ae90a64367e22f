import test from 'ava';
import sharp from 'sharp';
import { decodeCover } from '../../src/image/cover.ts';
import { probe } from '../../src/image/probe.ts';
import { contractLimits } from '../../src/image/types.ts';

/** A PNG of noise-free colours that differ everywhere, whose EXIF says that it is turned. */
async function turned(width: number, height: number, orientation: number): Promise<Buffer> {
  const data = new Uint8Array(width * height * 3);
  for (let i = 0; i < width * height; i++)
    data.set([(i % width) * 3, Math.floor(i / width) * 3, (i * 7) % 50], i * 3);
  return sharp(data, { raw: { width, height, channels: 3 } })
    .withMetadata({ orientation })
    .png()
    .toBuffer();
}

const cover = async (bytes: Buffer, width: number, height: number, timeoutSeconds = 0) => {
  const seen = await probe(bytes, contractLimits);
  return (await decodeCover(bytes, seen, { width, height }, { timeoutSeconds })).data;
};

for (const orientation of [2, 3, 5, 6, 7, 8]) {
  test(`a background of orientation ${orientation} looks like the upright one, enlarged and reduced`, async (t) => {
    const bytes = await turned(80, 20, orientation);
    const upright = await sharp(bytes).autoOrient().png().toBuffer();
    for (const [width, height] of [
      [60, 60],
      [160, 40],
      [10, 10],
    ] as const) {
      const got = await cover(bytes, width, height);
      const expected = await cover(upright, width, height);
      let sum = 0;
      for (const [i, value] of got.entries()) sum += Math.abs(value - (expected[i] ?? 0));
      t.true(sum / got.length < 0.5, `${width}x${height}: ${sum / got.length}`);
    }
  });
}

test('a turned line covers a canvas without being enlarged as a whole', async (t) => {
  // All of it, enlarged, would have 320 x 6,400,000 pixels.
  const data = await cover(await turned(20_000, 1, 8), 320, 240, 10);
  t.is(data.length, 320 * 240 * 4);
});

test('a long line that is not turned covers a wide canvas', async (t) => {
  // All of it, enlarged, would be 59 million pixels high, which libvips refuses.
  const data = await cover(await turned(1, 65_500, 1), 901, 433, 1);
  t.is(data.length, 901 * 433 * 4);
});
