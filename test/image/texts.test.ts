import { deflateSync } from 'node:zlib';
import test from 'ava';
import sharp from 'sharp';
import { configureLibvips } from '../../src/image/libvips.ts';
import { probe } from '../../src/image/probe.ts';
import { withoutTexts } from '../../src/image/texts.ts';
import { CONTRACT_LIMITS } from '../../src/image/types.ts';
import { insertPngChunk, pngChunk, pngChunks } from '../fixtures/bytes.ts';

test.before(() => {
  configureLibvips(CONTRACT_LIMITS);
});

const picture = () => sharp({ create: { width: 40, height: 30, channels: 3, background: '#81d4fa' } });
const compressed = (bytes: number) =>
  pngChunk('zTXt', Buffer.concat([Buffer.from('Comment\0\0'), deflateSync(Buffer.alloc(bytes, 65))]));

test('a picture with a few texts stays as it is, and so does what is no PNG', async (t) => {
  const png = insertPngChunk(await picture().png().toBuffer(), compressed(100_000));
  t.is(withoutTexts(png), png);
  const jpeg = await picture().jpeg().toBuffer();
  t.is(withoutTexts(jpeg), jpeg);
  for (let length = 0; length < png.length; length++)
    t.notThrows(() => withoutTexts(png.subarray(0, length)));
});

test('more texts than a picture needs are left out, all else is kept, behind the pixels too', async (t) => {
  const plain = await picture().withIccProfile('p3').withMetadata({ density: 300 }).png().toBuffer();
  const text = pngChunk('iTXt', Buffer.concat([Buffer.from('XML\0\0\0\0\0'), Buffer.alloc(9000, 65)]));
  const end = plain.length - 12;
  const full = insertPngChunk(Buffer.concat([plain.subarray(0, end), text, plain.subarray(end)]), text);
  const kept = withoutTexts(full);
  t.deepEqual(Buffer.from(kept), plain);
  t.deepEqual(pngChunks(full).filter(({ type }) => type === 'iTXt').length, 2);
  const probed = await probe(full, CONTRACT_LIMITS);
  t.deepEqual(probed, await probe(plain, CONTRACT_LIMITS));
  t.truthy(probed.density);
});

test('a file that ends in the middle of a text stays cut off', async (t) => {
  const plain = await picture().png().toBuffer();
  const full = insertPngChunk(plain, pngChunk('zTXt', Buffer.alloc(40_000, 1)));
  const cut = full.subarray(0, 20_000);
  t.true(withoutTexts(cut).length <= 33);
  await t.throwsAsync(async () => sharp(withoutTexts(cut)).raw().toBuffer());
});
