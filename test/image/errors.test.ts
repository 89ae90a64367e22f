import { randomFillSync } from 'node:crypto';
import test from 'ava';
import sharp, { type Sharp } from 'sharp';
import { toAppError } from '../../src/errors.ts';
import { decode } from '../../src/image/decode.ts';
import {
  dimensionsUnreadable,
  ImageError,
  imageErrorFrom,
  libvipsErrors,
  NoThreadError,
} from '../../src/image/errors.ts';
import { runJob } from '../../src/image/job.ts';
import { configureLibvips } from '../../src/image/libvips.ts';
import { probe } from '../../src/image/probe.ts';
import { contractLimits, type Probe } from '../../src/image/types.ts';

test.before(() => {
  configureLibvips({ formats: ['jpeg', 'png', 'webp'] });
});

const header: Probe = {
  format: 'jpeg',
  width: 64,
  height: 48,
  orientation: 1,
  colour: 'rgb',
  depth: 8,
  hasAlpha: false,
  convertsProfile: false,
};

const noise = () =>
  sharp(randomFillSync(Buffer.alloc(64 * 48 * 3)), { raw: { width: 64, height: 48, channels: 3 } });

/** Bytes that cause the text of each row in libvips. */
const PROVOKED: readonly (readonly [string, (jpeg: Buffer, png: Buffer) => Buffer, Probe])[] = [
  ['Input Buffer is empty', () => Buffer.alloc(0), header],
  ['unsupported image format', () => Buffer.from('no image'), header],
  ['exceeds pixel limit', (jpeg) => jpeg, { ...header, width: 10, height: 10 }],
  ['corrupt header', (jpeg) => jpeg.subarray(0, 30), header],
  ['premature end', (jpeg) => jpeg.subarray(0, jpeg.length / 2), header],
  ['read error', (_, png) => png.subarray(0, png.length / 2), { ...header, format: 'png' }],
];

test('every row of the table has a case that provokes it', (t) => {
  t.is(PROVOKED.length, libvipsErrors.length);
});

for (const [i, [text, damage, probe]] of PROVOKED.entries()) {
  test.serial(`libvips' "${text}" becomes the code and sentence of its row`, async (t) => {
    const jpeg = await noise().jpeg().toBuffer();
    const bytes = damage(jpeg, await noise().png().toBuffer());
    const error = await t.throwsAsync(decode(bytes, probe, probe), { instanceOf: ImageError });
    t.true(error?.cause instanceof Error && error.cause.message.includes(text), String(error?.cause));
    const [, code, detail] = libvipsErrors[i] ?? [];
    t.like(error, { code, detail });
  });
}

test('an unknown text, or a value that is no Error, is an image that cannot be read', (t) => {
  for (const thrown of [new Error('libvips says something new'), 'a string', undefined]) {
    const error = imageErrorFrom(thrown);
    t.like(error, { code: 'failed_to_read_image', detail: 'The image data could not be decoded.' });
    t.is(error.cause, thrown);
  }
});

test("the public sentence never contains the library's text", (t) => {
  const error = imageErrorFrom(new Error('VipsJpeg: premature end of JPEG image in /secret/path'));
  t.false(error.message.includes('secret'));
});

test('a thread that could not be started is not the fault of the image', async (t) => {
  const texts = [
    'glib: Error creating thread: Resource temporarily unavailable',
    'heif: Encoder plugin generated an error: Encoding problem: Tile encoder thread creation failed (8.5002)',
  ];
  for (const text of texts) {
    const job = { timeout: () => ({ toBuffer: () => Promise.reject(new Error(text)) }) } as unknown as Sharp;
    const error = await t.throwsAsync(runJob(job, { width: 1, height: 1 }, {}), {
      instanceOf: NoThreadError,
    });
    t.is(imageErrorFrom(error), error);
    t.like(toAppError(error), { id: 'service_unavailable', reason: 'threads', reported: true });
  }
});

test.serial('nor is one that could not be started for its header', async (t) => {
  const bytes = await sharp({ create: { width: 2, height: 2, channels: 3, background: 'red' } })
    .png()
    .toBuffer();
  const { metadata } = sharp.prototype;
  t.teardown(() => {
    sharp.prototype.metadata = metadata;
  });
  const refuseWith = (text: string) => {
    sharp.prototype.metadata = () => Promise.reject(new Error(text));
  };
  refuseWith('glib: Error creating thread: Resource temporarily unavailable');
  await t.throwsAsync(probe(bytes, contractLimits), { instanceOf: NoThreadError });
  refuseWith('pngload_buffer: unable to open image');
  await t.throwsAsync(probe(bytes, contractLimits), {
    instanceOf: ImageError,
    message: dimensionsUnreadable,
  });
});

test('an ImageError is returned unchanged', (t) => {
  const error = new ImageError('timeout', 'x');
  t.is(imageErrorFrom(error), error);
});
