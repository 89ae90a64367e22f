import { deflateSync } from 'node:zlib';
import test from 'ava';
import sharp from 'sharp';
import { decode } from '../../../src/image/decode.ts';
import { configureLibvips } from '../../../src/image/libvips.ts';
import { probe } from '../../../src/image/probe.ts';
import { contractLimits, type Dimensions } from '../../../src/image/types.ts';
import { insertPngChunk, pngChunk } from '../../fixtures/bytes.ts';
import { displayP3, PRIMARIES, rgbProfile } from '../../fixtures/icc.ts';

test.before(() => {
  configureLibvips(contractLimits);
});

const width = 256;
const height = 8;

type Pixel = (x: number) => readonly number[];

/** A PNG of columns; values of 16 bits where `depth` is 16. Colour type 2 (RGB) or 0 (gray). */
function png(colourType: 0 | 2, depth: 8 | 16, pixel: Pixel, chunks: readonly Buffer[] = []): Buffer {
  const row = Buffer.concat([
    Buffer.of(0),
    ...Array.from({ length: width }, (_, x) =>
      Buffer.concat(
        pixel(x).map((value) => (depth === 8 ? Buffer.of(value) : Buffer.of(value >> 8, value & 255))),
      ),
    ),
  ]);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(depth, 8);
  header.writeUInt8(colourType, 9);
  const data = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)));
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', header),
    ...chunks,
    pngChunk('IDAT', data),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

const words = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i);
  return bytes;
};

const gama = (value: number) => pngChunk('gAMA', words(value));
const chrm = (...values: readonly number[]) => pngChunk('cHRM', words(...values));
const cicp = (...values: readonly number[]) => pngChunk('cICP', Buffer.from(values));
const srgbChunk = pngChunk('sRGB', Buffer.of(0));
const iccp = (icc: Buffer) =>
  pngChunk('iCCP', Buffer.concat([Buffer.from('x\0\0', 'latin1'), deflateSync(icc)]));

const srgbWhiteAndPrimaries = [31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000] as const;
const bt2020 = [31270, 32900, 70800, 29200, 17000, 79700, 13100, 4600] as const;

interface Row {
  readonly at: (x: number) => readonly number[];
  readonly keepsProfile: boolean;
}

async function read(file: Buffer, target?: Dimensions): Promise<Row> {
  const header = await probe(file, contractLimits);
  const { data } = await decode(file, header, target ?? header);
  return { at: (x) => [...data.subarray(4 * x, 4 * x + 4)], keepsProfile: header.icc !== undefined };
}

/** Encoding of IEC 61966-2-1, 0 to 255. */
const encode = (light: number): number =>
  255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055);

const gray: Pixel = (x) => [x, x, x];
const columns = Array.from({ length: width }, (_, x) => x);

const near = (a: readonly number[], b: readonly number[], by: number): boolean =>
  a.every((value, i) => Math.abs(value - (b[i] ?? 0)) <= by);

test('gAMA 1.0: linear light is shown as light, in RGB, gray and 16 bits, at any size', async (t) => {
  for (const file of [
    png(2, 8, gray, [gama(100_000)]),
    png(0, 8, (x) => [x], [gama(100_000)]),
    png(2, 16, (x) => gray(x * 257), [gama(100_000)]),
    png(0, 16, (x) => [x * 257], [gama(100_000)]),
  ]) {
    const row = await read(file);
    t.false(row.keepsProfile);
    // The colour engine interpolates the first tones of gray.
    for (const x of columns.slice(8)) {
      const wanted = encode(x / 255);
      t.true(near(row.at(x), [wanted, wanted, wanted, 255], 2), `${x}: ${row.at(x)}, wanted ${wanted}`);
    }
    const reduced = await read(file, { width: 128, height: 4 });
    t.true(near(reduced.at(64), [188, 188, 188, 255], 4), `${reduced.at(64)}`);
  }
});

test('a gamma of 1/2.2 and the primaries of sRGB change nothing, nor do impossible ones', async (t) => {
  const chroma: Pixel = (x) => [x, 255 - x, 128];
  for (const chunks of [
    [gama(45_455)],
    [gama(45_455), chrm(...srgbWhiteAndPrimaries)],
    [chrm(...srgbWhiteAndPrimaries)],
    [gama(0)],
    [gama(4_000_000_000)],
    [pngChunk('gAMA', Buffer.alloc(2))],
    [gama(45_455), chrm(0, 0, 0, 0, 0, 0, 0, 0)],
    [gama(45_455), pngChunk('cHRM', Buffer.alloc(8))],
    [srgbChunk, gama(100_000)],
    [srgbChunk, gama(100_000), chrm(...bt2020)],
    [cicp(1, 13, 0, 1), gama(100_000)],
    [cicp(2, 2, 0, 1)],
    [cicp(9, 16, 9, 1)],
    [cicp(9)],
  ]) {
    const row = await read(png(2, 8, chroma, chunks));
    for (const x of columns) t.deepEqual(row.at(x), [...chroma(x), 255]);
  }
});

test("a profile counts before gAMA, and keeps the file's values", async (t) => {
  const icc = rgbProfile(PRIMARIES.adobe, { gamma: 2.2 });
  const row = await read(png(2, 8, gray, [iccp(icc), gama(100_000)]));
  t.true(row.keepsProfile);
  for (const x of columns) t.deepEqual(row.at(x), [x, x, x, 255]);
});

test('cICP counts before a profile; Display P3 looks as with the profile of Display P3', async (t) => {
  const colours: Pixel = (x) => [x, 255 - x, (x * 7) % 256];
  const p3 = await displayP3();
  const expected = await sharp(png(2, 8, colours, [iccp(p3)]))
    .toColourspace('srgb')
    .removeAlpha()
    .raw()
    .toBuffer();
  for (const chunks of [
    [cicp(12, 13, 0, 1)],
    [cicp(12, 13, 0, 1), iccp(rgbProfile(PRIMARIES.adobe, { gamma: 1 }))],
  ]) {
    const row = await read(png(2, 8, colours, chunks));
    t.false(row.keepsProfile);
    for (const x of columns)
      t.true(near(row.at(x).slice(0, 3), [...expected.subarray(3 * x, 3 * x + 3)], 3), `${x}: ${row.at(x)}`);
  }
  const sixteen = await read(png(2, 16, (x) => colours(x).map((v) => v * 257), [cicp(12, 13, 0, 1)]));
  for (const x of columns)
    t.true(
      near(sixteen.at(x).slice(0, 3), [...expected.subarray(3 * x, 3 * x + 3)], 8),
      `${x}: ${sixteen.at(x)}`,
    );
});

test('primaries of Rec. 2020 with gamma 1/2.2: gray stays gray, green leaves sRGB', async (t) => {
  const row = await read(
    png(2, 8, (x) => (x < 128 ? [x, x, x] : [0, 200, 0]), [gama(45_455), chrm(...bt2020)]),
  );
  for (const x of columns.slice(0, 128)) t.true(near(row.at(x), [x, x, x, 255], 2), `${x}: ${row.at(x)}`);
  const [r = 0, g = 0, b = 0] = row.at(200);
  t.is(r, 0);
  t.true(g > 200, `${g}`);
  t.true(b < 40, `${b}`);
});

test('PQ in 16 bits is tone-mapped: dark stays dark, white of a page is nearly white, all is monotonic', async (t) => {
  const file = png(2, 16, (x) => gray(x * 257), [cicp(9, 16, 0, 1)]);
  const row = await read(file);
  // Code values of 0.1, 1, 10, 100, 203, 1000 and 10 000 cd/m² (SMPTE ST 2084, ITU-R BT.2408).
  const at = (code: number) => row.at(Math.round(code * 255))[0] ?? 0;
  t.true(at(0.0623) < 10, `${at(0.0623)}`);
  t.true(Math.abs(at(0.508) - encode(100 / 203)) <= 4, `${at(0.508)}`);
  t.true(at(0.581) > 225 && at(0.581) < 250, `${at(0.581)}`);
  t.true(at(0.752) >= 253, `${at(0.752)}`);
  for (const x of columns.slice(1)) t.true((row.at(x)[0] ?? 0) >= (row.at(x - 1)[0] ?? 0), `${x}`);
  for (const x of columns) {
    const [r = 0, g = 0, b = 0] = row.at(x);
    t.true(Math.max(r, g, b) - Math.min(r, g, b) <= 2, `${x}: ${row.at(x)}`);
  }
});

test('HLG and narrow range are converted', async (t) => {
  const hlg = await read(png(2, 16, (x) => gray(x * 257), [cicp(9, 18, 0, 1)]));
  // 75 % is white of a page (ITU-R BT.2408).
  t.true((hlg.at(191)[0] ?? 0) > 225 && (hlg.at(191)[0] ?? 0) < 252, `${hlg.at(191)}`);
  const narrow = await read(png(2, 8, gray, [cicp(1, 13, 0, 0)]));
  t.true(near(narrow.at(16), [0, 0, 0, 255], 1), `${narrow.at(16)}`);
  t.true(near(narrow.at(235), [255, 255, 255, 255], 1), `${narrow.at(235)}`);
});

test('damaged and truncated chunks are no reason to fail', async (t) => {
  const file = png(2, 8, gray, [cicp(9, 16, 0, 1), gama(100_000), chrm(...bt2020)]);
  for (let length = 0; length < file.length; length++)
    await t.notThrowsAsync(probe(file.subarray(0, length), contractLimits).catch(() => {}));
  const twice = insertPngChunk(file, gama(100_000));
  await t.notThrowsAsync(read(twice));
});
