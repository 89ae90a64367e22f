import test from 'ava';
import sharp from 'sharp';
import { configureLibvips } from '../../../src/image/libvips.ts';
import { probe } from '../../../src/image/probe.ts';
import { CONTRACT_LIMITS } from '../../../src/image/types.ts';

test.before(() => {
  configureLibvips(CONTRACT_LIMITS);
});

const image = () =>
  sharp({ create: { width: 40, height: 30, channels: 3, background: '#81d4fa' } })
    .withIccProfile('p3')
    .webp();
const withChunks = (webp: Buffer, count: number) => {
  const file = Buffer.concat([webp, Buffer.alloc(8 * count, Buffer.from('abcd\0\0\0\0'))]);
  file.writeUInt32LE(file.length - 8, 4);
  return file;
};

test('an excessive number of chunks is refused, a few are accepted', async (t) => {
  const webp = await image().toBuffer();
  t.is((await probe(withChunks(webp, 5000), CONTRACT_LIMITS)).width, 40);
  await t.throwsAsync(probe(withChunks(webp, 10_001), CONTRACT_LIMITS), { code: 'failed_to_read_image' });
});

test('bytes after the end of an image are ignored', async (t) => {
  const file = Buffer.concat([await image().toBuffer(), Buffer.alloc(8 * 20_000)]);
  t.is((await probe(file, CONTRACT_LIMITS)).width, 40);
});
