import { deflateSync } from 'node:zlib';
import test from 'ava';
import sharp from 'sharp';
import { neededChunks } from '../../../src/image/container/png.ts';
import { decode } from '../../../src/image/decode.ts';
import { configureLibvips } from '../../../src/image/libvips.ts';
import { probe } from '../../../src/image/probe.ts';
import { contractLimits } from '../../../src/image/types.ts';
import { insertPngChunk, pngChunk, pngChunks } from '../../fixtures/bytes.ts';

test.before(() => {
  configureLibvips(contractLimits);
});

const image = () => sharp({ create: { width: 40, height: 30, channels: 3, background: '#81d4fa' } });
const compressed = (bytes: number) =>
  pngChunk('zTXt', Buffer.concat([Buffer.from('Comment\0\0'), deflateSync(Buffer.alloc(bytes, 65))]));

test('an image with a few texts is unchanged', async (t) => {
  const png = insertPngChunk(await image().png().toBuffer(), compressed(100_000));
  t.is(neededChunks(png), png);
  for (let length = 0; length < png.length; length++)
    t.notThrows(() => neededChunks(png.subarray(0, length)));
});

test('excess texts are removed, everything else is kept, also after the pixels', async (t) => {
  const plain = await image().withIccProfile('p3').withMetadata({ density: 300 }).png().toBuffer();
  const text = pngChunk('iTXt', Buffer.concat([Buffer.from('XML\0\0\0\0\0'), Buffer.alloc(9000, 65)]));
  const end = plain.length - 12;
  const full = insertPngChunk(Buffer.concat([plain.subarray(0, end), text, plain.subarray(end)]), text);
  const kept = neededChunks(full);
  t.deepEqual(Buffer.from(kept), plain);
  t.deepEqual(pngChunks(full).filter(({ type }) => type === 'iTXt').length, 2);
  const probed = await probe(full, contractLimits);
  t.deepEqual(probed, await probe(plain, contractLimits));
  t.truthy(probed.density);
});

test('a file that ends within a text stays truncated', async (t) => {
  const plain = await image().png().toBuffer();
  const full = insertPngChunk(plain, pngChunk('zTXt', Buffer.alloc(40_000, 1)));
  const cut = full.subarray(0, 20_000);
  t.true(neededChunks(cut).length <= 33);
  await t.throwsAsync(async () => sharp(neededChunks(cut)).raw().toBuffer());
});

test('excess and repeated chunks are removed; the image stays', async (t) => {
  const plain = await image().withIccProfile('p3').withMetadata({ density: 300 }).png().toBuffer();
  const empty = Buffer.alloc(0);
  for (const type of ['tEXt', 'zTXt', 'sPLT', 'hIST', 'prVt', 'acTL', 'fdAT', 'gAMA', 'eXIf', 'PLTE']) {
    const chunks = Buffer.concat(Array.from({ length: 1000 }, () => pngChunk(type, empty)));
    // The first of each kind is kept.
    const full = Buffer.concat([plain.subarray(0, -12), chunks, plain.subarray(-12)]);
    const left = pngChunks(Buffer.from(neededChunks(full))).filter((chunk) => chunk.type === type);
    t.true(left.length <= 1, type);
    t.like(await probe(full, contractLimits), { width: 40, height: 30, density: { x: 11811, y: 11811 } });
  }
});

test('an image with data in many chunks is accepted; more chunks than any image has are refused', async (t) => {
  const plain = await image().png().toBuffer();
  const more = (count: number) =>
    Buffer.concat([
      plain.subarray(0, -12),
      ...Array.from({ length: count }, () => pngChunk('IDAT', Buffer.alloc(0))),
      plain.subarray(-12),
    ]);
  const many = more(20_000);
  t.is(neededChunks(many), many);
  t.is((await probe(many, contractLimits)).width, 40);
  await t.throwsAsync(probe(more(100_001), contractLimits), { code: 'failed_to_read_image' });
});

test('bytes after the end of an image are ignored', async (t) => {
  const plain = await image().png().toBuffer();
  const full = Buffer.concat([plain, Buffer.alloc(12 * 200_000)]);
  t.is(neededChunks(full), full);
  t.is((await probe(full, contractLimits)).width, 40);
});

test('image data that is longer than the pixels need is refused, badly packed data is not', async (t) => {
  const pixels = Buffer.from(Array.from({ length: 40 * 30 * 3 }, (_, i) => (i * 7919) & 255));
  const raw = sharp(pixels, { raw: { width: 40, height: 30, channels: 3 } });
  const png = await raw.png({ compressionLevel: 0 }).toBuffer();
  const idat = png.indexOf('IDAT') - 4;
  const blocks = (count: number) => {
    // Empty stored blocks, of five bytes each.
    const rest = pngChunk('IDAT', Buffer.alloc(5 * count, Buffer.from([0, 0, 0, 0xff, 0xff])));
    const head = pngChunk('IDAT', Buffer.from([0x78, 0x01]));
    const own = png.readUInt32BE(idat);
    const data = pngChunk('IDAT', png.subarray(idat + 10, idat + 8 + own));
    return Buffer.concat([png.subarray(0, idat), head, rest, data, png.subarray(idat + 12 + own)]);
  };
  for (const adam7 of [false, true])
    t.is(
      (await probe(await raw.png({ compressionLevel: 0, progressive: adam7 }).toBuffer(), contractLimits))
        .width,
      40,
    );
  const padded = blocks(2000);
  const header = await probe(padded, contractLimits);
  t.deepEqual((await decode(padded, header, header)).data.length, 40 * 30 * 4);
  await t.throwsAsync(probe(blocks(20_000), contractLimits), { code: 'failed_to_read_image' });
});
