import test from 'ava';
import sharp from 'sharp';
import { decode } from '../../../src/image/decode.ts';
import { configureLibvips } from '../../../src/image/libvips.ts';
import { probe } from '../../../src/image/probe.ts';
import { contractLimits } from '../../../src/image/types.ts';

test.before(() => {
  configureLibvips(contractLimits);
});

/** Noise, so that its scans contain every byte, FF and restart markers among them. */
const noise = sharp(
  Buffer.from(Array.from({ length: 300 * 200 * 3 }, (_, i) => (Math.imul(i, 2654435761) >>> 13) & 255)),
  { raw: { width: 300, height: 200, channels: 3 } },
);
const few = (marker: number, count: number) => Buffer.alloc(count * 4, Buffer.from([0xff, marker, 0, 2]));
const behind = (jpeg: Buffer, at: number, bytes: Buffer) =>
  Buffer.concat([jpeg.subarray(0, at), bytes, jpeg.subarray(at)]);
const refused = { code: 'failed_to_read_image' } as const;

test('an excessive number of segments is refused, whatever their type', async (t) => {
  const jpeg = await noise.clone().jpeg().toBuffer();
  for (const marker of [0xe0, 0xe1, 0xe2, 0xed, 0xfe, 0xdb, 0xc4])
    await t.throwsAsync(probe(behind(jpeg, 2, few(marker, 10_001)), contractLimits), refused);
  const fill = behind(jpeg, 2, Buffer.alloc(5_000_000, 0xff));
  t.is((await probe(fill, contractLimits)).width, 300);
});

test('segments after a scan count too', async (t) => {
  const jpeg = await noise.clone().jpeg({ progressive: true }).toBuffer();
  const lastScan = jpeg.lastIndexOf(Buffer.from([0xff, 0xda]));
  await t.throwsAsync(probe(behind(jpeg, lastScan, few(0xe1, 10_001)), contractLimits), refused);
  await t.throwsAsync(probe(behind(jpeg, jpeg.length - 2, few(0xe1, 10_001)), contractLimits), refused);
});

test('images with metadata, many restart markers and bytes after their end are accepted', async (t) => {
  const jpeg = await noise.clone().jpeg({ quality: 100 }).toBuffer();
  const xmp = Buffer.alloc(65_535 + 2);
  xmp.writeUInt32BE(0xffe1ffff);
  const scan = jpeg.indexOf(Buffer.from([0xff, 0xda]));
  const images = {
    metadata: behind(jpeg, 2, Buffer.concat(Array.from({ length: 300 }, () => xmp))),
    progressive: await noise.clone().jpeg({ progressive: true, quality: 100 }).toBuffer(),
    trailing: Buffer.concat([jpeg, few(0xe1, 100_000)]),
    some: behind(jpeg, scan, few(0xfe, 5000)),
  };
  for (const [name, bytes] of Object.entries(images)) {
    const header = await probe(bytes, contractLimits);
    t.is((await decode(bytes, header, header)).data.length, 300 * 200 * 4, name);
  }
});

test('wherever a file is truncated, the scan of its segments ends', async (t) => {
  const jpeg = await noise.clone().jpeg({ progressive: true }).toBuffer();
  for (let length = 3; length < jpeg.length; length += 499) {
    const outcome = await probe(jpeg.subarray(0, length), contractLimits).then(
      () => 'read',
      (error: unknown) => (error as { code: string }).code,
    );
    t.regex(outcome, /^(?:read|failed_to_read_image|invalid_dimensions)$/);
  }
});

test('many scans are refused, and few that go through all pixels again and again', async (t) => {
  const jpeg = await noise.clone().jpeg({ progressive: true }).toBuffer();
  const end = jpeg.length - 2;
  const last = jpeg.subarray(jpeg.lastIndexOf(Buffer.from([0xff, 0xda])), end);
  const more = (count: number) => behind(jpeg, end, Buffer.concat(Array.from({ length: count }, () => last)));
  // 10 scans, of which 6 code the luminance, which has two thirds of the samples.
  t.is((await probe(more(5), contractLimits)).width, 300);
  await t.throwsAsync(probe(more(12), contractLimits), { message: /every pixel more than 10 times/ });
  const chrominance = Buffer.from(last);
  chrominance[5] = 2;
  const few = Buffer.concat(Array.from({ length: 91 }, () => chrominance.subarray(0, 12)));
  await t.throwsAsync(probe(behind(jpeg, end, few), contractLimits), refused);
  // A component that no header names.
  chrominance[5] = 9;
  const unknown = Buffer.concat(Array.from({ length: 91 }, () => chrominance.subarray(0, 12)));
  await t.throwsAsync(probe(behind(jpeg, end, unknown), contractLimits), { message: /more than 100 scans/ });
});

test('a sequential JPEG whose components have scans of their own counts as coded in parts', async (t) => {
  const whole = await noise.clone().jpeg().toBuffer();
  t.is((await probe(whole, contractLimits)).progressive, undefined);
  t.is(
    (await probe(await noise.clone().jpeg({ progressive: true }).toBuffer(), contractLimits)).progressive,
    true,
  );
  const gray = await noise.clone().toColourspace('b-w').jpeg().toBuffer();
  t.is((await probe(gray, contractLimits)).progressive, undefined);
  // The scan of the first component, of three.
  const scan = whole.indexOf(Buffer.from([0xff, 0xda]));
  const own = Buffer.from([0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0]);
  const parts = Buffer.concat([whole.subarray(0, scan), own, whole.subarray(scan + 14)]);
  t.is((await probe(parts, contractLimits)).progressive, true);
});
