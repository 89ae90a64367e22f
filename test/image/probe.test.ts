import test from 'ava';
import sharp from 'sharp';
import { ImageError } from '../../src/image/errors.ts';
import { configureLibvips } from '../../src/image/libvips.ts';
import { probe } from '../../src/image/probe.ts';
import { contractLimits } from '../../src/image/types.ts';
import { insertPngChunk, pngChunk, withHeaderSize } from '../fixtures/bytes.ts';
import { imageFile, MODES, p3Profile } from '../fixtures/files.ts';
import { drawScene } from '../fixtures/scene.ts';

test.before(() => {
  configureLibvips(contractLimits);
});

const { foreground, width, height } = drawScene('leaf', 53, 38);
const image = { width, height, data: foreground };
const file = async (container: 'jpeg' | 'png' | 'webp', mode: 'rgb' | 'rgba' = 'rgb') =>
  (await imageFile(image, container, mode)).bytes;

const refusal = async (bytes: Uint8Array, limits = contractLimits) => {
  try {
    await probe(bytes, limits);
  } catch (error) {
    if (error instanceof ImageError) return `${error.code}: ${error.detail}`;
    throw error;
  }
  return 'accepted';
};

for (const container of ['jpeg', 'png', 'webp'] as const) {
  for (const mode of MODES[container]) {
    test(`${container} ${mode} in all eight orientations: upright size, colour, depth, alpha, profile`, async (t) => {
      for (let orientation = 1; orientation <= 8; orientation += 1) {
        const { bytes } = await imageFile(image, container, mode, orientation);
        const { icc, ...seen } = await probe(bytes, contractLimits);
        const kind = /gray|cmyk|palette/.exec(mode)?.[0] ?? 'rgb';
        t.deepEqual<unknown, unknown>(seen, {
          format: container,
          width,
          height,
          orientation,
          colour: kind,
          depth: mode.includes('16') ? 16 : 8,
          hasAlpha: /rgba|alpha/.test(mode),
          convertsProfile: mode.endsWith('-icc') && kind !== 'rgb',
        });
        t.deepEqual(icc && Buffer.from(icc), mode === 'rgb-icc' ? await p3Profile() : undefined);
      }
    });
  }
}

test('a view with an offset into a larger buffer is read like a separate file', async (t) => {
  const bytes = await file('png');
  const view = new Uint8Array(Buffer.concat([Buffer.alloc(7), bytes, Buffer.alloc(9)])).subarray(
    7,
    7 + bytes.length,
  );
  t.is((await probe(view, contractLimits)).width, width);
});

test('an invalid profile, or one that is not for RGB, is dropped', async (t) => {
  const png = await file('png');
  const named = Buffer.from('x\0\0', 'latin1');
  const { deflateSync } = await import('node:zlib');
  const broken = Buffer.from(await p3Profile());
  broken.writeUInt32BE(broken.length + 4, 0);
  const bytes = insertPngChunk(png, pngChunk('iCCP', Buffer.concat([named, deflateSync(broken)])));
  t.is((await probe(bytes, contractLimits)).icc, undefined);
});

for (const [name, bytes] of [
  ['text', Buffer.from('no image at all')],
  ['svg', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')],
  ['pdf', Buffer.from('%PDF-1.7')],
  ['empty file', Buffer.alloc(0)],
  ['unknown', Buffer.from([0xff, 0xd8])],
] as const) {
  test(`${name} is refused by content`, async (t) => {
    t.is(await refusal(bytes), `invalid_file_type: Expected jpg/png/webp, received ${name}`);
  });
}

test('AVIF, TIFF and GIF are refused, and the refusal names the enabled formats', async (t) => {
  const image = () => sharp({ create: { width: 9, height: 9, channels: 3, background: '#123' } });
  for (const [name, bytes] of [
    ['avif', await image().avif().toBuffer()],
    ['tiff', await image().tiff().toBuffer()],
    ['gif', await image().gif().toBuffer()],
  ] as const) {
    t.is(
      await refusal(bytes),
      `invalid_file_type: Expected jpg/png/webp, received ${name}; the operator of this service can allow it (CUTOUT_INPUT_FORMATS)`,
    );
  }
  const limits = { ...contractLimits, formats: ['jpeg', 'png', 'webp', 'avif'] as const };
  t.is(
    await refusal(await image().gif().toBuffer(), limits),
    'invalid_file_type: Expected jpg/png/webp/avif, received gif; the operator of this service can allow it (CUTOUT_INPUT_FORMATS)',
  );
});

test('a side of more than 65,535 pixels is refused by its header, however few pixels there are', async (t) => {
  const png = await file('png');
  for (const [width, height] of [
    [65_536, 1],
    [1, 65_536],
    [50_000_000, 1],
  ] as const)
    t.is(
      await refusal(withHeaderSize(png, width, height)),
      `resolution_too_high: Input image has ${width} × ${height} pixels, a side may have at most 65535. Scale the image down or cut it.`,
    );
  t.is(await refusal(withHeaderSize(png, 65_535, 2)), 'accepted');
});

for (const container of ['jpeg', 'png', 'webp'] as const) {
  test(`a ${container} whose header announces more than 50 MP is refused with its size`, async (t) => {
    const bytes = withHeaderSize(await file(container), 10_000, 5001);
    t.is(
      await refusal(bytes),
      'resolution_too_high: Input image has 51 megapixels, maximum supported input resolution is 50 megapixels',
    );
  });

  test(`a ${container} that announces exactly 50 MP passes the header check`, async (t) => {
    t.is(await refusal(withHeaderSize(await file(container), 10_000, 5000)), 'accepted');
  });

  test(`a ${container} truncated anywhere in its header has no dimensions`, async (t) => {
    const bytes = await file(container);
    for (let length = 12; length < 28; length += 1) {
      t.regex(await refusal(bytes.subarray(0, length)), /^(invalid_dimensions|failed_to_read_image): /);
    }
  });
}

for (const [name, width_, height_] of [
  ['no width', 0, 40],
  ['no height', 40, 0],
] as const) {
  test(`headers with ${name}`, async (t) => {
    for (const container of ['jpeg', 'png'] as const) {
      t.is(
        await refusal(withHeaderSize(await file(container), width_, height_)),
        'invalid_dimensions: The dimensions of the given image could not be read.',
      );
    }
  });
}

test('sides beyond the limits of the format are no dimensions', async (t) => {
  t.regex(await refusal(withHeaderSize(await file('png'), 0x7fffffff, 0x7fffffff)), /^invalid_dimensions: /);
  t.regex(await refusal(withHeaderSize(await file('jpeg'), 65_535, 65_535)), /^invalid_dimensions: /);
});

test('a truncated WebP is reported as such', async (t) => {
  const bytes = await file('webp');
  t.is(
    await refusal(bytes.subarray(0, bytes.length / 2)),
    'failed_to_read_image: The file ends before the image is complete.',
  );
});

test('too many bytes are refused before anything is read', async (t) => {
  const most = contractLimits.maxBytes;
  t.is(await refusal(new Uint8Array(most + 1)), 'file_too_large: File exceeds limit of 22MB');
  t.is(await refusal(new Uint8Array(most)), 'invalid_file_type: Expected jpg/png/webp, received unknown');
});
