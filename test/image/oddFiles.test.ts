import { deflateSync } from 'node:zlib';
import test from 'ava';
import sharp from 'sharp';
import { decode } from '../../src/image/decode.ts';
import { configureLibvips } from '../../src/image/libvips.ts';
import { probe } from '../../src/image/probe.ts';
import { contractLimits, type Dimensions } from '../../src/image/types.ts';
import { insertJpegSegment, insertPngChunk, pngChunk } from '../fixtures/bytes.ts';
import { PRIMARIES, rgbProfile } from '../fixtures/icc.ts';

/** Files that other programs got wrong, from public reports. */

test.before(() => {
  configureLibvips(contractLimits);
});

async function read(file: Uint8Array, target?: Dimensions) {
  const header = await probe(file, contractLimits);
  const { data, width, height } = await decode(file, header, target ?? header);
  const at = (x: number, y: number) => [...data.subarray(4 * (y * width + x), 4 * (y * width + x) + 4)];
  return { header, at, width, height, data };
}

test('reducing an image with transparency shows no hidden colour and no ringing in alpha', async (t) => {
  const [w, h] = [3000, 900];
  const raw = Buffer.alloc(w * h * 4);
  for (let i = 0; i < w * h; i++) raw.set(i % w < w / 2 ? [0, 255, 0, 0] : [255, 0, 0, 255], 4 * i);
  const file = await sharp(raw, { raw: { width: w, height: h, channels: 4 } })
    .png()
    .toBuffer();
  for (const target of [
    { width: 912, height: 273 },
    { width: 300, height: 90 },
    { width: 2999, height: 900 },
  ]) {
    const { at } = await read(file, target);
    const edge = target.width / 2;
    for (let x = 0; x < target.width; x++) {
      const [r = 0, g = 0, b = 0, a = 0] = at(x, 40);
      if (x < edge - 6) t.is(a, 0, `${target.width}: alpha ${a} at ${x}`);
      if (x > edge + 6) t.is(a, 255, `${target.width}: alpha ${a} at ${x}`);
      if (a > 0) t.true(r >= 250 && g <= 5 && b === 0, `${target.width}: ${[r, g, b, a]} at ${x}`);
    }
    const alphas = Array.from({ length: target.width }, (_, x) => at(x, 40)[3] ?? 0);
    t.true(alphas.every((alpha, x) => x === 0 || alpha >= (alphas[x - 1] ?? 0)));
  }
});

test('reducing averages values as browsers do: a board of 0 and 255 becomes 128', async (t) => {
  const side = 2000;
  const raw = Buffer.alloc(side * side, 0);
  for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) if ((x + y) % 2) raw[y * side + x] = 255;
  const file = await sharp(raw, { raw: { width: side, height: side, channels: 1 } })
    .png()
    .toBuffer();
  const { at } = await read(file, { width: 500, height: 500 });
  t.true(Math.abs((at(250, 250)[0] ?? 0) - 128) <= 2, `${at(250, 250)}`);
});

const jpegSegment = (marker: number, body: readonly number[]): Buffer =>
  Buffer.from([0xff, marker, (body.length + 2) >> 8, (body.length + 2) & 255, ...body]);

/** A baseline JPEG of one colour, 16 x 16: four components as they are stored, with Adobe's marker if `transform` is given. */
function fourComponents(stored: readonly number[], transform?: number): Buffer {
  let bits = '';
  // Code of a category: its number in four bits; of the end of a block: 0.
  for (let block = 0; block < 4; block++)
    for (const value of stored) {
      const difference = block === 0 ? 8 * (value - 128) : 0;
      const category = difference === 0 ? 0 : Math.abs(difference).toString(2).length;
      const digits = difference > 0 ? difference : difference + 2 ** category - 1;
      bits += category.toString(2).padStart(4, '0');
      if (category > 0) bits += digits.toString(2).padStart(category, '0');
      bits += '0';
    }
  const scan = (bits.match(/.{1,8}/g) ?? []).flatMap((byte) => {
    const value = Number.parseInt(byte.padEnd(8, '1'), 2);
    return value === 255 ? [255, 0] : [value];
  });
  const components = [1, 2, 3, 4];
  return Buffer.concat([
    Buffer.of(0xff, 0xd8),
    ...(transform === undefined
      ? []
      : [jpegSegment(0xee, [...Buffer.from('Adobe'), 0, 100, 0, 0, 0, 0, transform])]),
    jpegSegment(0xdb, [0, ...Array.from({ length: 64 }, () => 1)]),
    jpegSegment(0xc0, [8, 0, 16, 0, 16, 4, ...components.flatMap((id) => [id, 0x11, 0])]),
    jpegSegment(0xc4, [0, 0, 0, 0, 12, ...Array(12).fill(0), ...Array.from({ length: 12 }, (_, i) => i)]),
    jpegSegment(0xc4, [0x10, 1, ...Array(15).fill(0), 0]),
    jpegSegment(0xda, [4, ...components.flatMap((id) => [id, 0]), 0, 63, 0]),
    Buffer.from(scan),
    Buffer.of(0xff, 0xd9),
  ]);
}

test('ink of Adobe is stored inverted; the form of Photoshop (YCCK) has the same colours', async (t) => {
  // Stored: 255 is no ink.
  const white = await read(fourComponents([255, 255, 255, 255], 0));
  t.true(
    white.at(8, 8).every((value) => value >= 250),
    `${white.at(8, 8)}`,
  );
  const black = await read(fourComponents([255, 255, 255, 0], 0));
  t.true(
    black
      .at(8, 8)
      .slice(0, 3)
      .every((value) => value < 60),
    `${black.at(8, 8)}`,
  );
  const cyan = (await read(fourComponents([55, 235, 235, 255], 0))).at(8, 8);
  t.true((cyan[0] ?? 255) < (cyan[1] ?? 0), `${cyan}`);
  // Luma and chroma of 255 - 55, 255 - 235, 255 - 235.
  const coded = (await read(fourComponents([74, 98, 218, 255], 2))).at(8, 8);
  t.true(
    cyan.every((value, i) => Math.abs(value - (coded[i] ?? 0)) <= 4),
    `${cyan}, ${coded}`,
  );
  const light = (await read(fourComponents([0, 128, 128, 255], 2))).at(8, 8);
  t.true(
    light.every((value) => value >= 250),
    `${light}`,
  );
});

test('without the marker of Adobe ink is taken as stored inverted too, as libjpeg and browsers do', async (t) => {
  const marked = (await read(fourComponents([200, 120, 60, 240], 0))).at(8, 8);
  const unmarked = (await read(fourComponents([200, 120, 60, 240]))).at(8, 8);
  t.log(`marked ${marked}, unmarked ${unmarked}`);
  t.deepEqual(unmarked, marked);
});

const exif = (orientation: number): Buffer =>
  Buffer.from([
    ...Buffer.from('MM\0*\0\0\0\x08\0\x01', 'latin1'),
    ...[0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0],
  ]);

test('an orientation in a text chunk of a PNG is not applied, as in browsers; that of eXIf is', async (t) => {
  const plain = await sharp({ create: { width: 64, height: 48, channels: 3, background: '#123456' } })
    .png()
    .toBuffer();
  const hex = Buffer.concat([Buffer.from('Exif\0\0'), exif(6)]).toString('hex');
  const profile = Buffer.from(`\nexif\n      ${hex.length / 2}\n${hex}\n`);
  const text = pngChunk('tEXt', Buffer.concat([Buffer.from('Raw profile type exif\0'), profile]));
  const packed = pngChunk(
    'zTXt',
    Buffer.concat([Buffer.from('Raw profile type exif\0\0'), deflateSync(profile)]),
  );
  for (const chunk of [text, packed]) {
    const { width, height } = await read(insertPngChunk(plain, chunk));
    t.deepEqual([width, height], [64, 48]);
    const both = await read(insertPngChunk(insertPngChunk(plain, pngChunk('eXIf', exif(1))), chunk));
    t.deepEqual([both.width, both.height], [64, 48]);
  }
  const turned = await read(insertPngChunk(plain, pngChunk('eXIf', exif(6))));
  t.deepEqual([turned.width, turned.height], [48, 64]);
});

test('odd profiles are no reason to refuse an image: known incorrect sRGB, gray in RGB, long name, bad checksum', async (t) => {
  const plain = await sharp({ create: { width: 64, height: 48, channels: 3, background: '#c08040' } })
    .png()
    .toBuffer();
  const icc = (name: string, body: Buffer) =>
    pngChunk('iCCP', Buffer.concat([Buffer.from(`${name}\0\0`, 'latin1'), body]));
  const wrongWhite = Buffer.from(rgbProfile(PRIMARIES.srgb, { gamma: 2.2 }));
  const asGray = Buffer.from(wrongWhite);
  asGray.write('GRAY', 16, 'latin1');
  const packed = deflateSync(wrongWhite);
  const damaged = Buffer.from(packed);
  damaged.writeUInt32BE(1, damaged.length - 4);
  for (const chunk of [
    icc('sRGB IEC61966-2.1', packed),
    icc('x', deflateSync(asGray)),
    icc('n'.repeat(80), packed),
    icc('x', damaged),
    icc('x', Buffer.alloc(0)),
  ]) {
    const { at } = await read(insertPngChunk(plain, chunk));
    t.deepEqual(at(20, 20), [0xc0, 0x80, 0x40, 255]);
  }
});

test('content credentials are accepted, however large', async (t) => {
  const jpeg = await sharp({ create: { width: 64, height: 48, channels: 3, background: '#c08040' } })
    .jpeg()
    .toBuffer();
  let signed: Buffer = jpeg;
  for (let i = 0; i < 12; i++)
    signed = insertJpegSegment(
      signed,
      0xeb,
      Buffer.concat([Buffer.from('JP\0\x01\0\0\0\x01jumbc2pa'), Buffer.alloc(60_000, i)]),
    );
  t.is((await read(signed)).width, 64);
  const png = await sharp(jpeg).png().toBuffer();
  const manifest = pngChunk('caBX', Buffer.concat([Buffer.from('jumbc2pa'), Buffer.alloc(500_000, 7)]));
  t.is((await read(insertPngChunk(png, manifest))).width, 64);
});

/** A PNG of one row per value of `rows`, eight pixels wide. Colour type 0 (gray) or 2 (RGB). */
function samples(
  colourType: 0 | 2,
  depth: 8 | 16,
  rows: readonly (readonly number[])[],
  key: readonly number[],
): Buffer {
  const words = (values: readonly number[]) =>
    values.flatMap((value) => (depth === 8 ? [value & 255] : [value >> 8, value & 255]));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(8, 0);
  header.writeUInt32BE(rows.length, 4);
  header.writeUInt8(depth, 8);
  header.writeUInt8(colourType, 9);
  const data = rows.flatMap((row) => [0, ...Array.from({ length: 8 }, () => words(row)).flat()]);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', header),
    pngChunk('tRNS', Buffer.from(key.flatMap((value) => [value >> 8, value & 255]))),
    pngChunk('IDAT', deflateSync(Buffer.from(data))),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

test('a colour that a PNG names as transparent is, to the last bit, and its neighbours are not', async (t) => {
  const gray = await read(samples(0, 8, [[17], [18], [200]], [17]));
  t.deepEqual(
    [0, 1, 2].map((y) => gray.at(4, y)[3]),
    [0, 255, 255],
  );
  const rgb = await read(
    samples(
      2,
      8,
      [
        [1, 2, 3],
        [1, 2, 4],
      ],
      [1, 2, 3],
    ),
  );
  t.deepEqual(
    [0, 1].map((y) => rgb.at(4, y)[3]),
    [0, 255],
  );
  const gray16 = await read(samples(0, 16, [[0x1234], [0x1235]], [0x1234]));
  t.deepEqual(
    [0, 1].map((y) => gray16.at(4, y)[3]),
    [0, 255],
  );
  const rgb16 = await read(
    samples(
      2,
      16,
      [
        [0x1234, 0x2345, 0x3456],
        [0x1234, 0x2345, 0x3457],
      ],
      [0x1234, 0x2345, 0x3456],
    ),
  );
  t.deepEqual(
    [0, 1].map((y) => rgb16.at(4, y)[3]),
    [0, 255],
  );
});

test('of a JPEG with a gain map the base image is read, at its own size', async (t) => {
  const base = await sharp({ create: { width: 64, height: 48, channels: 3, background: '#c08040' } })
    .jpeg({ quality: 95 })
    .toBuffer();
  const map = await sharp({ create: { width: 32, height: 24, channels: 3, background: '#808080' } })
    .toColourspace('b-w')
    .jpeg()
    .toBuffer();
  const xmp = Buffer.from(
    'http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"/></rdf:RDF></x:xmpmeta>',
  );
  const mpf = Buffer.concat([Buffer.from('MPF\0MM\0*\0\0\0\x08\0\0', 'latin1'), Buffer.alloc(40)]);
  const file = Buffer.concat([insertJpegSegment(insertJpegSegment(base, 0xe2, mpf), 0xe1, xmp), map]);
  const { width, height, at, header } = await read(file);
  t.deepEqual([width, height], [64, 48]);
  t.true(at(20, 20).every((value, i) => Math.abs(value - ([0xc0, 0x80, 0x40, 255][i] ?? 0)) <= 3));
  t.is(header.icc, undefined);
});
