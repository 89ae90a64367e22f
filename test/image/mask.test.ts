import test from 'ava';
import sharp from 'sharp';
import { ImageError } from '../../src/image/errors.ts';
import { decodeMask } from '../../src/image/mask.ts';
import { probe } from '../../src/image/probe.ts';
import { contractLimits, type Dimensions } from '../../src/image/types.ts';

async function decoded(bytes: Buffer, target?: Dimensions) {
  const found = await probe(bytes, contractLimits);
  const { width, height } = target ?? found;
  return decodeMask(bytes, found, { width, height });
}

const gray = (values: readonly number[], width: number) =>
  sharp(Buffer.from(values), { raw: { width, height: values.length / width, channels: 1 } });

test('gray values are kept, whatever file has them', async (t) => {
  const values = [0, 1, 128, 254, 255, 64];
  const png = await gray(values, 3).png().toBuffer();
  t.deepEqual([...(await decoded(png)).data], values);
  const rgb = await gray(values, 3).toColourspace('srgb').png().toBuffer();
  t.deepEqual([...(await decoded(rgb)).data], values);
  const deep = await gray(values, 3).toColourspace('grey16').png().toBuffer();
  t.deepEqual([...(await decoded(deep)).data], values);
  const webp = await gray(values, 3).webp({ lossless: true }).toBuffer();
  t.deepEqual([...(await decoded(webp)).data], values);
});

test('a cut-out counts by its alpha, an opaque image with an alpha channel by its colours', async (t) => {
  const rgba = (pixels: readonly (readonly [number, number])[]) =>
    sharp(Buffer.from(pixels.flatMap(([level, alpha]) => [level, level, level, alpha])), {
      raw: { width: pixels.length, height: 1, channels: 4 },
    })
      .png()
      .toBuffer();
  const cutout = await rgba([
    [30, 255],
    [200, 100],
    [0, 0],
  ]);
  t.deepEqual([...(await decoded(cutout)).data], [255, 100, 0]);
  const opaque = await rgba([
    [30, 255],
    [200, 255],
  ]);
  t.deepEqual([...(await decoded(opaque)).data], [30, 200]);
});

test('a mask is upright, and reduced without values beyond black and white', async (t) => {
  const half = await gray(
    Array.from({ length: 400 * 200 }, (_, i) => (i % 400 < 200 ? 0 : 255)),
    400,
  )
    .jpeg({ quality: 100 })
    .withMetadata({ orientation: 3 })
    .toBuffer();
  const { data, width, height } = await decoded(half, { width: 40, height: 20 });
  t.deepEqual([width, height, data.length], [40, 20, 800]);
  t.true([...data.subarray(0, 18)].every((value) => value >= 253));
  t.true([...data.subarray(22, 40)].every((value) => value <= 2));
});

test('a damaged mask is an error of the image', async (t) => {
  const png = await gray(
    Array.from({ length: 10_000 }, (_, i) => (i * 31) % 256),
    100,
  )
    .png()
    .toBuffer();
  const cut = png.subarray(0, png.length - 300);
  const error = await t.throwsAsync(decoded(cut), { instanceOf: ImageError });
  t.is((error as ImageError).code, 'failed_to_read_image');
});
