import { existsSync, readFileSync } from 'node:fs';
import test from 'ava';
import sharp from 'sharp';
import { decode } from '../../src/image/decode.ts';
import { ImageError } from '../../src/image/errors.ts';
import { configureLibvips } from '../../src/image/libvips.ts';
import { probe } from '../../src/image/probe.ts';
import { contractLimits, type Dimensions } from '../../src/image/types.ts';
import { insertJpegSegment, withHeaderSize, withStrayBytes } from '../fixtures/bytes.ts';
import { type Container, imageFile, MODES, type Mode } from '../fixtures/files.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { difference, type Rgba } from '../fixtures/raster.ts';
import { drawScene } from '../fixtures/scene.ts';

test.before(() => {
  configureLibvips(contractLimits);
});

const { foreground, width, height } = drawScene('glass', 91, 64);
const image: Rgba = { width, height, data: foreground };

// libvips has one error text for all threads: tests of a sentence run alone (test.serial).
const read = async (bytes: Uint8Array, target?: Dimensions) => {
  const header = await probe(bytes, contractLimits);
  return decode(bytes, header, target ?? header);
};

const refusal = async (bytes: Uint8Array) => {
  const error = await read(bytes).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof ImageError ? `${error.code}: ${error.detail}` : error;
};

/**
 * Allowed largest and mean difference. Lossless files of RGB and gray are exact; gray profiles and print colours are
 * converted by a colour engine; JPEG at quality 100 has rounding noise, CMYK at a quarter of it per ink.
 */
function tolerance(container: Container, mode: Mode): { readonly max: number; readonly mean: number } {
  if (mode === 'cmyk') return { max: 12, mean: 4.5 };
  if (mode === 'cmyk-icc') return { max: 20, mean: 7 };
  if (container === 'jpeg') return { max: 5, mean: 0.5 };
  return mode.startsWith('gray') && mode.endsWith('-icc') ? { max: 1, mean: 0.2 } : { max: 0, mean: 0 };
}

for (const container of ['jpeg', 'png', 'webp'] as const) {
  for (const mode of MODES[container]) {
    test(`${container} ${mode} in all eight orientations decodes to the upright RGBA`, async (t) => {
      const allowed = tolerance(container, mode);
      for (let orientation = 1; orientation <= 8; orientation += 1) {
        const { bytes, expected } = await imageFile(image, container, mode, orientation);
        const raster = await read(bytes);
        t.is(raster.width, width);
        t.is(raster.height, height);
        const { max, mean } = difference(raster.data, expected.data);
        t.true(
          max <= allowed.max && mean <= allowed.mean,
          `orientation ${orientation}: max ${max}, mean ${mean}`,
        );
      }
    });
  }
}

test('the raster has an ArrayBuffer of its own', async (t) => {
  const { data } = await read((await imageFile(image, 'png', 'rgba')).bytes);
  t.is(data.byteOffset, 0);
  t.is(data.buffer.byteLength, width * height * 4);
});

test('full size is bit-exact with a plain decode, 4:2:0 and progressive included', async (t) => {
  const { data } = drawScene('hair', 301, 203).composite.reduce((scene) => scene, {
    data: drawScene('hair', 301, 203).composite,
  });
  for (const progressive of [false, true]) {
    const jpeg = await sharp(data, { raw: { width: 301, height: 203, channels: 4 } })
      .jpeg({ quality: 85, progressive })
      .toBuffer();
    const plain = await sharp(jpeg).ensureAlpha().raw().toBuffer();
    t.is(difference((await read(jpeg)).data, plain).max, 0);
  }
});

test('a smaller target resamples the upright image', async (t) => {
  const scene = drawScene('polygon', 600, 400, 5);
  const big: Rgba = { width: 600, height: 400, data: scene.composite };
  const target = { width: 150, height: 100 };
  const average = new Uint8Array(150 * 100 * 4);
  for (let i = 0; i < average.length; i += 1) {
    const [x, y, c] = [Math.floor(i / 4) % 150, Math.floor(i / 600), i % 4];
    let sum = 0;
    for (let dy = 0; dy < 4; dy += 1) {
      for (let dx = 0; dx < 4; dx += 1) sum += big.data[((y * 4 + dy) * 600 + x * 4 + dx) * 4 + c] ?? 0;
    }
    average[i] = Math.round(sum / 16);
  }
  for (const container of ['jpeg', 'png', 'webp'] as const) {
    for (const orientation of [1, 6]) {
      const { bytes } = await imageFile(big, container, 'rgb', orientation);
      const raster = await read(bytes, target);
      t.is(raster.width, 150);
      t.is(raster.height, 100);
      const { mean } = difference(raster.data, average);
      t.true(mean < 1.5, `${container} orientation ${orientation}: mean ${mean} from the area average`);
    }
  }
});

test('the first frame of an animated WebP', async (t) => {
  const frame = (red: number) => Buffer.alloc(20 * 10 * 3, Buffer.from([red, 40, 90]));
  const raw = { width: 20, height: 20, channels: 3 as const, pageHeight: 10 };
  const bytes = await sharp(Buffer.concat([frame(200), frame(10)]), { raw })
    .webp({ lossless: true })
    .toBuffer();
  t.is((await sharp(bytes).metadata()).pages, 2);
  const raster = await read(bytes);
  t.is(raster.height, 10);
  t.deepEqual([...raster.data.subarray(0, 4)], [200, 40, 90, 255]);
});

for (const share of [0.5, 0.9, 0.99]) {
  test.serial(`files cut to ${share * 100} % are refused`, async (t) => {
    const scene = drawScene('mesh', 240, 160);
    const photo = { width: 240, height: 160, data: scene.composite };
    for (const container of ['jpeg', 'png', 'webp'] as const) {
      const { bytes } = await imageFile(photo, container, 'rgb');
      const short = bytes.subarray(0, Math.floor(bytes.length * share));
      t.regex(String(await refusal(short)), /^failed_to_read_image: The file (ends|is damaged)/, container);
    }
  });
}

test('headers that announce more than the data contains are refused', async (t) => {
  for (const container of ['jpeg', 'png', 'webp'] as const) {
    const { bytes } = await imageFile(image, container, 'rgb');
    t.regex(String(await refusal(withHeaderSize(bytes, 2000, 1500))), /^failed_to_read_image: /, container);
  }
});

test.serial(
  'a JPEG without the end of its scan is refused, one with stray or trailing bytes is not',
  async (t) => {
    const { bytes, expected } = await imageFile(image, 'jpeg', 'rgb');
    const gap = Buffer.concat([bytes.subarray(0, bytes.length - 2000), bytes.subarray(-2)]);
    t.is(await refusal(gap), 'failed_to_read_image: The file ends before the image is complete.');
    t.true(difference((await read(withStrayBytes(bytes))).data, expected.data).mean < 0.5);
    const trailing = Buffer.concat([bytes, Buffer.from('more')]);
    t.true(difference((await read(trailing)).data, expected.data).mean < 0.5);
  },
);

test('a truncated JPEG is refused even if its header has harmless faults', async (t) => {
  const { bytes } = await imageFile(image, 'jpeg', 'rgb');
  t.regex(
    String(await refusal(withStrayBytes(bytes.subarray(0, bytes.length / 2)))),
    /^failed_to_read_image: /,
  );
});

test('harmless faults of headers do not affect an image, nor do concurrent failures', async (t) => {
  const { bytes, expected } = await imageFile(image, 'jpeg', 'rgb');
  const version2 = insertJpegSegment(bytes, 0xe0, Buffer.from('JFIF\0\x02\x01\0\0\x01\0\x01\0\0', 'latin1'));
  const sos = Buffer.from(bytes);
  sos.writeUInt8(0, sos.indexOf(Buffer.from('ffda', 'hex')) + 12);
  const filled = Buffer.concat([bytes.subarray(0, 2), Buffer.from([0xff, 0xff]), bytes.subarray(2)]);
  const bad = bytes.subarray(0, bytes.length / 2);
  for (let round = 0; round < 5; round += 1) {
    const faulty = [withStrayBytes(bytes), version2, sos, filled];
    const outcomes = await Promise.allSettled([...faulty, bad, bad, bad].map((file) => read(file)));
    outcomes.forEach((outcome, i) => {
      t.is(outcome.status, i < faulty.length ? 'fulfilled' : 'rejected', `file ${i}`);
      if (outcome.status === 'fulfilled') t.true(difference(outcome.value.data, expected.data).mean < 0.5);
    });
  }
});

test('damaged EXIF and profiles do not affect an image', async (t) => {
  const { bytes, expected } = await imageFile(image, 'jpeg', 'rgb');
  const exif = insertJpegSegment(bytes, 0xe1, Buffer.from('Exif\0\0II*\0\xff\xff\xff\xff', 'latin1'));
  t.true(difference((await read(exif)).data, expected.data).mean < 0.5);
  const profile = insertJpegSegment(bytes, 0xe2, Buffer.from('ICC_PROFILE\0\x01\x01junk', 'latin1'));
  t.true(difference((await read(profile)).data, expected.data).mean < 0.5);
});

test('enlarging is an error of the caller', async (t) => {
  const { bytes } = await imageFile(image, 'png', 'rgb');
  const header = await probe(bytes, contractLimits);
  await t.throwsAsync(decode(bytes, header, { width: width + 1, height }), { instanceOf: RangeError });
});

test('an abort before or during the work rejects with its reason', async (t) => {
  const { bytes } = await imageFile(image, 'png', 'rgb');
  const header = await probe(bytes, contractLimits);
  const before = AbortSignal.abort(new Error('client gone'));
  await t.throwsAsync(decode(bytes, header, header, { signal: before }), { message: 'client gone' });
  const during = new AbortController();
  const work = decode(bytes, header, header, { signal: during.signal });
  during.abort(new Error('too late'));
  await t.throwsAsync(work, { message: 'too late' });
});

test('a refused file does not affect the next one', async (t) => {
  const { bytes, expected } = await imageFile(image, 'png', 'rgb');
  const bad = bytes.subarray(0, bytes.length / 2);
  const mixed = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => read(i % 2 ? bad : bytes)));
  mixed.forEach((outcome, i) => {
    if (outcome.status === 'fulfilled') t.is(difference(outcome.value.data, expected.data).max, 0);
    t.is(outcome.status, i % 2 ? 'rejected' : 'fulfilled');
  });
});

const recorded = new URL('../../../../../shared/data/recorded/', import.meta.url);
const hasRecorded = existsSync(new URL('person-in-field.jpg', recorded));

test('opaque pixels of the recorded answer equal our decoding of its source', async (t) => {
  if (!hasRecorded) {
    sayLeftOut(t, '../shared/data/recorded is not here');
    return;
  }
  const source = await read(readFileSync(new URL('person-in-field.jpg', recorded)));
  const answer = await read(readFileSync(new URL('person-in-field.png', recorded)));
  t.is(source.data.length, answer.data.length);
  let [max, sum, count] = [0, 0, 0];
  for (let i = 0; i < source.data.length; i += 4) {
    if (answer.data[i + 3] !== 255) continue;
    for (let c = i; c < i + 3; c += 1) {
      const d = Math.abs((source.data[c] ?? 0) - (answer.data[c] ?? 0));
      max = Math.max(max, d);
      sum += d;
      count += 1;
    }
  }
  t.true(max <= 1 && sum / count < 0.1, `max ${max}, mean ${sum / count}`);
});
