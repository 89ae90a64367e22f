import { deflateSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { decodeCover } from '../../src/image/cover.ts';
import { decode } from '../../src/image/decode.ts';
import { tagJpeg, tagWebp } from '../../src/image/fileMetadata.ts';
import { configureLibvips } from '../../src/image/libvips.ts';
import { decodeMask } from '../../src/image/mask.ts';
import { probe } from '../../src/image/probe.ts';
import { boundedProfile } from '../../src/image/sanitiseProfile.ts';
import { contractLimits, type Probe } from '../../src/image/types.ts';
import { insertPngChunk, linearGrayProfile, pngChunk, withoutPngChunk } from '../fixtures/bytes.ts';
import { displayP3, PRIMARIES, rgbProfile } from '../fixtures/icc.ts';
import { elements, tagNames, withTags } from '../fixtures/iccElements.ts';

const limits = { ...contractLimits, formats: ['jpeg', 'png', 'webp', 'tiff'] } as const;
test.before(() => {
  configureLibvips(limits);
});

/** So many that reading them takes minutes. */
const many = 300_000;
const size = { width: 48, height: 32 };
const pixels = Buffer.from(
  Array.from({ length: size.width * size.height * 3 }, (_, i) => (Math.imul(i, 2654435761) >>> 20) & 255),
);
const image = () => sharp(pixels, { raw: { ...size, channels: 3 } });
const cmyk = () => image().toColourspace('cmyk').withIccProfile('cmyk').jpeg({ quality: 95 }).toBuffer();

async function pressProfile(): Promise<Buffer> {
  const { icc } = await sharp(await cmyk()).metadata();
  if (!icc) throw new Error('no profile');
  return icc;
}

/** `iCCP` of a PNG that has none. */
const inPng = (png: Buffer, icc: Buffer) =>
  insertPngChunk(
    withoutPngChunk(png, 'iCCP'),
    pngChunk('iCCP', Buffer.concat([Buffer.from('profile\0\0', 'latin1'), deflateSync(icc)])),
  );

const plainCmyk = () => image().toColourspace('cmyk').jpeg({ quality: 95 }).toBuffer();
const plainGray = () => image().toColourspace('b-w').png().toBuffer();
const plainWebp = () => image().webp({ lossless: true }).toBuffer();

/** Files with a profile, of every container and kind of colours that a conversion reads. */
const files: Readonly<Record<string, (change: (icc: Buffer) => Buffer) => Promise<Buffer>>> = {
  'CMYK JPEG': async (change) => tagJpeg(await plainCmyk(), { icc: change(await pressProfile()) }),
  'gray PNG': async (change) => inPng(await plainGray(), change(linearGrayProfile())),
  'RGB PNG': async (change) => inPng(await image().png().toBuffer(), change(await displayP3())),
  'RGB WebP': async (change) => tagWebp(await plainWebp(), { icc: change(await displayP3()) }, size),
};
const channelsOf = (icc: Buffer) => ({ GRAY: 1, 'RGB ': 3, CMYK: 4 })[icc.toString('latin1', 16, 20)] ?? 0;
const withElements = (count: number) => (icc: Buffer) =>
  withTags(icc, ['D2B0', elements(channelsOf(icc), count)], ['B2D0', elements(3, count)]);

/** All that reads the pixels of an upload: as image, as background, as mask. */
async function everything(file: Buffer): Promise<Buffer[]> {
  const header = await probe(file, limits);
  const decoded = await decode(file, header, header);
  const cover = await decodeCover(file, header, { width: 40, height: 40 });
  const mask = await decodeMask(file, header, size);
  return [decoded, cover, mask].map(({ data }) => Buffer.from(data));
}

for (const [name, file] of Object.entries(files)) {
  test(`${name}: a profile that names one matrix again and again is read by its other tags`, async (t) => {
    const expected = await everything(await file((icc) => icc));
    t.deepEqual(await everything(await file(withElements(many))), expected);
  });
}

test('a profile in pieces of which the first has less than its table is not used', async (t) => {
  const icc = withElements(many)(await pressProfile());
  const plain = await plainCmyk();
  const segment = (number: number, data: Buffer) => {
    const body = Buffer.concat([
      Buffer.from(`ICC_PROFILE\0${String.fromCharCode(number, 2)}`, 'latin1'),
      data,
    ]);
    const head = Buffer.from([0xff, 0xe2, 0, 0]);
    head.writeUInt16BE(body.length + 2, 2);
    return Buffer.concat([head, body]);
  };
  const small = withElements(20)(await pressProfile());
  // The whole beginning lies elsewhere, where the library does not look.
  const decoy = Buffer.concat([Buffer.from([0xff, 0xfe, 2, 2]), icc.subarray(0, 512)]);
  for (const [what, at] of [
    [small, 140],
    [small, 60],
  ] as const) {
    const parts = [segment(1, what.subarray(0, at)), segment(2, what.subarray(at, at + 60_000))];
    const file = Buffer.concat([plain.subarray(0, 2), decoy, ...parts, plain.subarray(2)]);
    const header = await probe(file, limits);
    const [decoded] = await everything(file);
    t.is(decoded?.length, size.width * size.height * 4);
    t.not(header.embedded, undefined);
  }
});

async function resultProfile(t: ExecutionContext, icc: Buffer): Promise<Probe['icc']> {
  const header = await probe(await inPng(await image().png().toBuffer(), icc), limits);
  t.is(header.width, size.width);
  return header.icc;
}

test('what a result keeps names no such elements either; a usual profile is kept byte for byte', async (t) => {
  const plain = rgbProfile(PRIMARIES.adobe, { gamma: 2.2 });
  t.deepEqual(await resultProfile(t, plain), plain);
  t.deepEqual(await resultProfile(t, await displayP3()), await displayP3());
  const kept = await resultProfile(t, withElements(20_000)(plain));
  t.deepEqual(kept && tagNames(Buffer.from(kept)), tagNames(plain));
});

/** A curve of so many entries. */
const table = (entries: number) => {
  const bytes = Buffer.alloc(12 + 2 * entries);
  bytes.write('curv', 'latin1');
  bytes.writeUInt32BE(entries, 8);
  return bytes;
};

/** `lut16Type` that states these numbers and has so many bytes. */
function lut(channels: readonly [number, number], grid: number, entries: number, bytes: number): Buffer {
  const data = Buffer.alloc(bytes);
  data.write('mft2', 'latin1');
  data.set([...channels, grid], 8);
  data.writeUInt16BE(entries, 48);
  data.writeUInt16BE(entries, 50);
  return data;
}

test('tags of more than their bytes, or of more than profiles in use have, are left out', async (t) => {
  const names = (icc: Buffer, tag: readonly [string, Buffer]) => {
    const bounded = boundedProfile(withTags(icc, tag));
    return bounded && tagNames(Buffer.from(bounded));
  };
  const press = await pressProfile();
  const own = tagNames(press);
  const rgb = rgbProfile(PRIMARIES.adobe, { gamma: 2.2 });
  const ownRgb = tagNames(rgb);
  const whole = 52 + 2 * (2 * 3 + 3 ** 3 * 3 + 2 * 3);
  t.deepEqual(names(rgb, ['A2B0', lut([3, 3], 3, 2, whole)]), [...ownRgb, 'A2B0']);
  for (const tag of [
    ['A2B0', lut([3, 3], 3, 2, whole - 1)],
    ['A2B0', lut([3, 3], 255, 2, whole)],
    ['A2B0', lut([15, 3], 3, 2, whole)],
    ['A2B0', lut([3, 3], 3, 4097, 100_000)],
    ['kTRC', table(4097)],
    ['kTRC', table(10).subarray(0, 20)],
    ['desc', elements(3, 10)],
    ['what', Buffer.from('text\0\0\0\0abc')],
  ] as const)
    t.deepEqual(names(rgb, tag), ownRgb, tag[0]);
  t.deepEqual(names(rgb, ['kTRC', table(4096)]), [...ownRgb, 'kTRC']);
  t.deepEqual(names(press, ['what', Buffer.alloc(12)]), own);
});

test('a profile without a conversion, of another kind, or of tags over each other is not used', async (t) => {
  const rgb = rgbProfile(PRIMARIES.adobe, { gamma: 2.2 });
  const changed = (change: (icc: Buffer) => void) => {
    const copy = Buffer.from(rgb);
    change(copy);
    return boundedProfile(copy);
  };
  t.is(boundedProfile(rgb), rgb);
  t.is(
    changed((icc) => icc.write('link', 12)),
    undefined,
  );
  t.is(
    changed((icc) => icc.write('nmcl', 12)),
    undefined,
  );
  t.is(
    changed((icc) => icc.write('6CLR', 16)),
    undefined,
  );
  t.is(
    changed((icc) => icc.write('gone', 132)),
    undefined,
  );
  t.is(
    changed((icc) => icc.writeUInt32BE(101, 128)),
    undefined,
  );
  t.is(
    changed((icc) => icc.writeUInt32BE(0xffffffff, 128)),
    undefined,
  );
  for (let length = 0; length < rgb.length; length += 7)
    t.notThrows(() => boundedProfile(rgb.subarray(0, length)));

  // Ten tags that each name the same 50 kB, from another byte on.
  const names = ['A2B0', 'A2B1', 'A2B2', 'B2A0', 'B2A1', 'B2A2', 'gamt', 'desc', 'cprt', 'dmnd'];
  const icc = withTags(rgb, ...names.map((name) => [name, lut([3, 3], 2, 2, 52)] as const), [
    'dmdd',
    Buffer.alloc(60_000),
  ]);
  const own = tagNames(rgb).length;
  const from = icc.length - 60_000;
  for (const [i] of names.entries()) {
    const at = 132 + 12 * (own + i);
    lut([3, 3], 2, 2, 52).copy(icc, from + 64 * i);
    icc.writeUInt32BE(from + 64 * i, at + 4);
    icc.writeUInt32BE(50_000, at + 8);
  }
  t.is(boundedProfile(icc), undefined);
});

test('a file that is nearly a profile everywhere is looked through in linear time', async (t) => {
  const file = tagJpeg(await plainCmyk(), { icc: withElements(2)(await pressProfile()) });
  const comment = (data: Buffer) => Buffer.concat([Buffer.from([0xff, 0xfe, 0xff, 0xff]), data]);
  const zeros = Array.from({ length: 300 }, () => comment(Buffer.alloc(65_533)));
  const header = await probe(Buffer.concat([file.subarray(0, 2), ...zeros, file.subarray(2)]), limits);
  t.not(header.embedded, undefined);
  t.not(header.embedded, 'unusable');
  const signatures = Array.from({ length: 300 }, () => comment(Buffer.alloc(65_533, 'acsp')));
  const many = await probe(Buffer.concat([file.subarray(0, 2), ...signatures, file.subarray(2)]), limits);
  t.is(many.embedded, 'unusable');
});
