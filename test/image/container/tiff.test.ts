import test from 'ava';
import sharp from 'sharp';
import { decode } from '../../../src/image/decode.ts';
import { configureLibvips } from '../../../src/image/libvips.ts';
import { probe } from '../../../src/image/probe.ts';
import { contractLimits, type ProbeLimits } from '../../../src/image/types.ts';

const limits: ProbeLimits = { ...contractLimits, formats: ['tiff'] };
test.before(() => {
  configureLibvips(limits);
});

const refused = { code: 'failed_to_read_image' } as const;

const [BYTE, SHORT, LONG, LONG8] = [1, 3, 4, 16] as const;
type Tag = readonly [tag: number, type: number, count: number, value: number];

interface Layout {
  readonly big?: boolean;
  readonly endian?: 'II' | 'MM';
  /** Of one image; all have the same tags. */
  readonly images?: number;
  readonly tags?: readonly Tag[];
  readonly extra?: number;
}

const gray: readonly Tag[] = [
  [256, SHORT, 1, 4],
  [257, SHORT, 1, 2],
  [258, SHORT, 1, 8],
  [259, SHORT, 1, 1],
  [262, SHORT, 1, 1],
  [273, LONG, 1, 16],
  [277, SHORT, 1, 1],
  [278, SHORT, 1, 2],
  [279, LONG, 1, 8],
];

/** A TIFF or BigTIFF of 4×2 gray pixels, which lie behind its header, or of the tags that are given instead. */
function tiff({ big = false, endian = 'II', images = 1, tags = [], extra = 0 }: Layout = {}): Buffer {
  const given = new Map([...gray, ...tags].map((tag) => [tag[0], tag]));
  const entries = [...given.values()].sort(([a], [b]) => a - b);
  const [first, countBytes, entryBytes, wordBytes] = big ? [24, 8, 20, 8] : [24, 2, 12, 4];
  const ifdBytes = countBytes + entries.length * entryBytes + wordBytes;
  const file = Buffer.alloc(first + images * ifdBytes + extra);
  const little = endian === 'II';
  const put = (at: number, bytes: number, value: number) => {
    if (bytes === 8) {
      if (little) file.writeBigUInt64LE(BigInt(value), at);
      else file.writeBigUInt64BE(BigInt(value), at);
    } else if (little) file.writeUIntLE(value, at, bytes);
    else file.writeUIntBE(value, at, bytes);
  };
  file.write(endian, 'latin1');
  put(2, 2, big ? 43 : 42);
  if (big) put(4, 2, 8);
  put(big ? 8 : 4, wordBytes, first);
  for (let image = 0, at = first; image < images; image += 1) {
    put(at, countBytes, entries.length);
    at += countBytes;
    for (const [tag, type, count, value] of entries) {
      put(at, 2, tag);
      put(at + 2, 2, type);
      put(at + 4, wordBytes, count);
      const size = { [BYTE]: 1, [SHORT]: 2, [LONG]: 4, [LONG8]: 8 }[type] ?? 4;
      const inside = count * size <= wordBytes;
      put(at + 4 + wordBytes, inside ? size : wordBytes, value);
      at += entryBytes;
    }
    put(at, wordBytes, image + 1 < images ? at + wordBytes : 0);
    at += wordBytes;
  }
  return file;
}

const layouts = [
  { endian: 'II' },
  { endian: 'MM' },
  { endian: 'II', big: true },
  { endian: 'MM', big: true },
] as const;

for (const layout of layouts) {
  const name = `${layout.endian} ${'big' in layout ? 'BigTIFF' : 'TIFF'}`;

  test(`${name}: images without end are refused, some are not`, async (t) => {
    const some = tiff({ ...layout, images: 900 });
    const header = await probe(some, limits);
    t.like(header, { width: 4, height: 2 });
    t.is((await decode(some, header, header)).data.length, 4 * 2 * 4);
    await t.throwsAsync(probe(tiff({ ...layout, images: 1001 }), limits), refused);
  });

  test(`${name}: a chain of images that ends in itself is refused`, async (t) => {
    const file = tiff({ ...layout, images: 1 });
    const big = 'big' in layout;
    file.copy(file, file.length - (big ? 8 : 4), big ? 8 : 4, big ? 16 : 8);
    await t.throwsAsync(probe(file, limits), refused);
  });

  test(`${name}: strips and values beyond measure are refused`, async (t) => {
    const strips = (count: number): Tag[] => [
      [273, LONG, count, 24],
      [279, LONG, count, 24],
    ];
    await t.throwsAsync(probe(tiff({ ...layout, tags: strips(200_001), extra: 4_000_000 }), limits), refused);
    // Every image names the same megabyte.
    const icc: Tag[] = [[34675, BYTE, 1_000_000, 24]];
    await t.throwsAsync(probe(tiff({ ...layout, tags: icc, extra: 1_000_000, images: 2 }), limits), {
      message: /longer than the file/,
    });
    const many = Array.from({ length: 60 }, (_, i): Tag => [40_000 + i, SHORT, 1, 1]);
    await t.throwsAsync(probe(tiff({ ...layout, tags: many, images: 400 }), limits), refused);
  });

  test(`${name}: strips that name the same bytes again and again are refused`, async (t) => {
    // 50 rows of 2000 bytes, which are in the file once; the first strip states the length of all.
    const rows = 50;
    const shared = (bytes: number): Tag[] => [
      [257, SHORT, 1, rows],
      [273, LONG, rows, 24],
      [278, SHORT, 1, 1],
      [279, LONG, rows, bytes],
    ];
    const file = tiff({ ...layout, tags: shared(24), extra: 4000 });
    // The lengths lie where the pixels of the first strips do: 0 but for those that are written here.
    const put = (i: number, value: number) =>
      layout.endian === 'II'
        ? file.writeUInt32LE(value, 1000 + 4 * i)
        : file.writeUInt32BE(value, 1000 + 4 * i);
    const name = Buffer.alloc(4);
    const at = file.indexOf(
      layout.endian === 'II' ? Buffer.from([279 & 255, 1]) : Buffer.from([1, 279 & 255]),
    );
    t.true(at > 0);
    const field = at + ('big' in layout ? 12 : 8);
    if (layout.endian === 'II') name.writeUInt32LE(1000);
    else name.writeUInt32BE(1000);
    name.copy(file, 'big' in layout && layout.endian === 'MM' ? field + 4 : field);
    file.fill(0, 1000, 1000 + 4 * rows);
    for (let i = 0; i < rows; i++) put(i, 50);
    t.is((await probe(file, limits)).height, rows);
    for (let i = 0; i < rows; i++) put(i, file.length / 4);
    await t.throwsAsync(probe(file, limits), { message: /longer than the file/ });
  });

  test(`${name}: pixels and tiles of many bytes are refused`, async (t) => {
    const wide: readonly Tag[][] = [
      [[277, SHORT, 1, 17]],
      [[277, LONG, 1, 70_000]],
      [[258, SHORT, 1, 256]],
      [
        [322, LONG, 1, 100_000],
        [323, LONG, 1, 100_000],
      ],
      [
        [322, LONG, 1, 4096],
        [323, LONG, 1, 4096],
      ],
      [
        [322, LONG8, 1, 100_000],
        [323, LONG8, 1, 100_000],
      ],
    ];
    for (const tags of wide) {
      // An eight-byte value has no place in the entry of a TIFF that is not big.
      if (tags.some(([, type]) => type === LONG8) && !('big' in layout)) continue;
      await t.throwsAsync(probe(tiff({ ...layout, tags }), limits), refused);
    }
  });
}

test('files as programs write them are read', async (t) => {
  const [width, height] = [300, 200];
  const pixels = Buffer.from(Array.from({ length: width * height * 4 }, (_, i) => (i * 7) & 255));
  const image = () => sharp(pixels, { raw: { width, height, channels: 4 } });
  const files = {
    plain: await image().tiff().toBuffer(),
    tiled: await image().tiff({ tile: true, tileWidth: 64, tileHeight: 64, compression: 'lzw' }).toBuffer(),
    pyramid: await image().tiff({ tile: true, pyramid: true }).toBuffer(),
    deep: await image().toColourspace('rgb16').tiff({ compression: 'deflate' }).toBuffer(),
    profile: await image().withIccProfile('p3').withMetadata().tiff({ bigtiff: true }).toBuffer(),
    jpeg: await image().removeAlpha().tiff({ compression: 'jpeg' }).toBuffer(),
  };
  for (const [name, bytes] of Object.entries(files)) {
    const header = await probe(bytes, limits);
    t.like(header, { width, height }, name);
    t.is((await decode(bytes, header, header)).data.length, width * height * 4, name);
    for (let length = 4; length < bytes.length; length += Math.ceil(bytes.length / 40)) {
      const outcome = await probe(bytes.subarray(0, length), limits).then(
        () => 'read',
        (error: unknown) => (error as { code: string }).code,
      );
      t.regex(outcome, /^(?:read|failed_to_read_image|invalid_dimensions)$/, name);
    }
  }
});
