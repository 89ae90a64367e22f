import { existsSync, readFileSync } from 'node:fs';
import test from 'ava';
import { unzipSync } from 'fflate';
import sharp from 'sharp';
import { assertFits, type EncodeOptions, encode, resolveFormat } from '../../src/image/encode.ts';
import { ImageError } from '../../src/image/errors.ts';
import type { OutputFormat, Raster } from '../../src/image/types.ts';
import { jpegSegments } from '../fixtures/bytes.ts';
import { p3Profile } from '../fixtures/files.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { sharpPng } from '../fixtures/png.ts';
import { difference, mapPixels } from '../fixtures/raster.ts';
import { drawScene } from '../fixtures/scene.ts';

const scene = drawScene('glass', 320, 240, 7);
const { width, height } = scene;
/** As the engine returns it: RGB 0 where alpha is 0. */
const cutout = mapPixels({ width, height, data: scene.foreground }, (r, g, b, a) =>
  a === 0 ? [0, 0, 0, 0] : [r, g, b, a],
);
const photo: Raster = { width, height, data: scene.composite };
const density = { x: 11811, y: 11811 };

const run = async (raster: Raster, options: Partial<EncodeOptions> & { readonly format: OutputFormat }) => {
  const { engine, asked } = sharpPng();
  const encoded = await encode(raster, { channels: 'rgba', opaque: false, pngEffort: 3, ...options }, engine);
  return { ...encoded, asked };
};
const pixels = (file: Uint8Array) => sharp(file, { ignoreIcc: true }).raw().toBuffer();

test('png passes raster, profile and resolution to the native encoder', async (t) => {
  const icc = await p3Profile();
  const { asked, contentType, bytes } = await run(cutout, { format: 'png', icc, density });
  t.deepEqual(asked, [{ channels: 'rgba', effort: 3, icc, pixelsPerMetre: [11811, 11811] }]);
  t.is(contentType, 'image/png');
  t.is(difference(await pixels(bytes), cutout.data).max, 0);
  t.deepEqual((await run(cutout, { format: 'png' })).asked, [{ channels: 'rgba', effort: 3 }]);
});

test('jpg is baseline, 4:2:0, without metadata', async (t) => {
  const { bytes, contentType } = await run(photo, { format: 'jpg', opaque: true });
  t.is(contentType, 'image/jpeg');
  const segments = jpegSegments(bytes);
  t.deepEqual([...new Set(segments.map(({ marker }) => marker))], [0xdb, 0xc0, 0xc4, 0xda]);
  const frame = segments.find(({ marker }) => marker === 0xc0)?.body;
  t.deepEqual([frame?.readUInt8(7), frame?.readUInt8(10), frame?.readUInt8(13)], [0x22, 0x11, 0x11]);
  const opaque = await sharp(bytes).ensureAlpha().raw().toBuffer();
  t.true(difference(opaque, photo.data).mean < 3);
});

test('jpg quality 90: the quantisation table of the standard, scaled by 0.2', async (t) => {
  const { bytes } = await run(photo, { format: 'jpg', opaque: true });
  const table = jpegSegments(bytes).find(({ marker }) => marker === 0xdb)?.body;
  t.deepEqual([...(table?.subarray(1, 9) ?? [])], [3, 2, 2, 3, 2, 2, 3, 3]);
});

test('jpg composites pixels that are not opaque over white', async (t) => {
  const { bytes } = await run(cutout, { format: 'jpg' });
  const onWhite = mapPixels(cutout, (r, g, b, a) => {
    const blend = (value: number) => Math.round((value * a + 255 * (255 - a)) / 255);
    return [blend(r), blend(g), blend(b), 255];
  });
  const seen = await sharp(bytes).ensureAlpha().raw().toBuffer();
  t.true(difference(seen, onWhite.data).mean < 1.5, String(difference(seen, onWhite.data).mean));
  t.deepEqual([...seen.subarray(0, 3)], [255, 255, 255]);
});

test('webp keeps alpha exactly, and RGB 0 away from edges where alpha is 0', async (t) => {
  const { bytes, contentType } = await run(cutout, { format: 'webp' });
  t.is(contentType, 'image/webp');
  const seen = await pixels(bytes);
  t.is(seen.length, cutout.data.length);
  let [hidden, coloured] = [0, 0];
  for (let i = 0; i < seen.length; i += 4) {
    t.is(seen[i + 3], cutout.data[i + 3]);
    if (cutout.data[i + 3] !== 0) continue;
    hidden += 1;
    if ((seen[i] ?? 0) + (seen[i + 1] ?? 0) + (seen[i + 2] ?? 0) > 0) coloured += 1;
  }
  t.true(hidden > 20_000 && coloured < hidden * 0.1, `${coloured} of ${hidden}`);
  t.deepEqual([...seen.subarray(0, 4)], [0, 0, 0, 0]);
});

test('lossless webp is the raster, RGB under alpha 0 included', async (t) => {
  const lossless = await run(cutout, { format: 'webp', lossless: true });
  t.is(lossless.contentType, 'image/webp');
  t.is(difference(await pixels(lossless.bytes), cutout.data).max, 0);
  const opaque = await run(photo, { format: 'webp', lossless: true, opaque: true });
  t.is(difference(await sharp(opaque.bytes).ensureAlpha().raw().toBuffer(), photo.data).max, 0);
  const matte = await run(cutout, { format: 'webp', lossless: true, channels: 'alpha' });
  t.is(difference(await sharp(matte.bytes).toColourspace('b-w').raw().toBuffer(), scene.alpha).max, 0);
  t.is(difference(await pixels((await run(cutout, { format: 'webp' })).bytes), cutout.data).max > 0, true);
});

test('avif keeps alpha exactly, and visible colours about as well as webp', async (t) => {
  const { bytes, contentType } = await run(cutout, { format: 'avif' });
  t.is(contentType, 'image/avif');
  const { compression, hasAlpha, depth } = await sharp(bytes).metadata();
  t.like({ compression, hasAlpha, depth }, { compression: 'av1', hasAlpha: true, depth: 'uchar' });
  const webp = await run(cutout, { format: 'webp' });
  const [seen, compared] = [await pixels(bytes), await pixels(webp.bytes)];
  t.is(seen.length, cutout.data.length);
  let [error, errorOfWebp, changed, hidden, coloured] = [0, 0, 0, 0, 0];
  cutout.data.forEach((value, i) => {
    const alpha = cutout.data[i | 3] ?? 0;
    if (i % 4 === 3) changed += seen[i] === value ? 0 : 1;
    else if (alpha === 0) {
      hidden += 1;
      if ((seen[i] ?? 0) > 20) coloured += 1;
    } else {
      error += ((seen[i] ?? 0) - value) ** 2 * alpha;
      errorOfWebp += ((compared[i] ?? 0) - value) ** 2 * alpha;
    }
  });
  t.is(changed, 0);
  t.true(error > 0 && error < 1.4 * errorOfWebp, `${error / errorOfWebp}`);
  t.true(hidden > 60_000 && coloured < hidden * 0.02, `${coloured} of ${hidden}`);
});

test('avif of an opaque image has no alpha', async (t) => {
  const { bytes } = await run(photo, { format: 'avif', opaque: true });
  t.false((await sharp(bytes).metadata()).hasAlpha);
  t.true(difference(await sharp(bytes).ensureAlpha().raw().toBuffer(), photo.data).mean < 3);
});

test('channels=alpha as avif is the matte without loss, as gray', async (t) => {
  const { bytes } = await run(cutout, { format: 'avif', channels: 'alpha', icc: await p3Profile() });
  const { icc, hasAlpha } = await sharp(bytes).metadata();
  t.deepEqual([icc, hasAlpha], [undefined, false]);
  t.is(difference(await sharp(bytes).extractChannel(0).raw().toBuffer(), scene.alpha).max, 0);
});

test('webp of an opaque image has no alpha', async (t) => {
  const { bytes } = await run(photo, { format: 'webp', opaque: true });
  const { hasAlpha } = await sharp(bytes).metadata();
  t.false(hasAlpha);
  t.true(difference(await sharp(bytes).ensureAlpha().raw().toBuffer(), photo.data).mean < 4);
});

test('avif has the profile of the source', async (t) => {
  const icc = await p3Profile();
  const { bytes } = await run(cutout, { format: 'avif', icc, density });
  t.deepEqual((await sharp(bytes).metadata()).icc, icc);
  const plain = await run(cutout, { format: 'avif' });
  t.is(difference(await pixels(bytes), await pixels(plain.bytes)).max, 0);
});

for (const format of ['jpg', 'webp'] as const) {
  test(`${format} has the profile of the source`, async (t) => {
    const icc = await p3Profile();
    const { bytes } = await run(cutout, { format, icc, density });
    const metadata = await sharp(bytes).metadata();
    t.deepEqual(metadata.icc, icc);
    if (format === 'jpg') t.is(metadata.density, 300);
  });

  test(`channels=alpha as ${format} is the matte in gray, without a profile`, async (t) => {
    const icc = await p3Profile();
    const { bytes } = await run(cutout, { format, channels: 'alpha', icc, density });
    const { icc: written, channels } = await sharp(bytes).metadata();
    t.is(written, undefined);
    if (format === 'jpg') t.is(channels, 1);
    const gray = await sharp(bytes).toColourspace('b-w').raw().toBuffer();
    t.true(difference(gray, scene.alpha).mean < 1.5, String(difference(gray, scene.alpha).mean));
  });
}

test('channels=alpha as png requests gray from the native encoder, with the resolution and without the profile', async (t) => {
  const { asked, bytes } = await run(cutout, {
    format: 'png',
    channels: 'alpha',
    icc: await p3Profile(),
    density,
  });
  t.deepEqual(asked, [{ channels: 'alpha', effort: 3, pixelsPerMetre: [11811, 11811] }]);
  t.is(difference(await sharp(bytes).toColourspace('b-w').raw().toBuffer(), scene.alpha).max, 0);
});

for (const channels of ['rgba', 'alpha'] as const) {
  test(`zip with channels=${channels} contains color.jpg with its background and alpha.png`, async (t) => {
    const icc = await p3Profile();
    // As the engine returns it for a ZIP: the photo's RGB everywhere, the matte as alpha.
    const data = Uint8Array.from(photo.data);
    scene.alpha.forEach((a, i) => {
      data[i * 4 + 3] = a;
    });
    const { bytes, asked, contentType } = await run(
      { width, height, data },
      { format: 'zip', channels, icc, density },
    );
    t.is(contentType, 'application/zip');
    const entries = unzipSync(bytes);
    t.deepEqual(Object.keys(entries), ['color.jpg', 'alpha.png']);
    t.is(
      Buffer.from(bytes).readUInt32LE(10),
      0x0021_0000,
      'the first time of the format: equal images give equal bytes',
    );
    const color = entries['color.jpg'] ?? new Uint8Array();
    const metadata = await sharp(color).metadata();
    t.deepEqual(metadata.icc, icc);
    t.is(metadata.density, 300);
    t.is(metadata.chromaSubsampling, '4:2:0');
    t.true(
      difference(await sharp(color, { ignoreIcc: true }).ensureAlpha().raw().toBuffer(), photo.data).mean < 3,
    );
    t.deepEqual(asked, [{ channels: 'alpha', effort: 3, pixelsPerMetre: [11811, 11811] }]);
    const alpha = await sharp(entries['alpha.png']).toColourspace('b-w').raw().toBuffer();
    t.is(difference(alpha, scene.alpha).max, 0);
  });
}

test('encoding does not change the raster', async (t) => {
  const before = Uint8Array.from(cutout.data);
  for (const format of ['png', 'jpg', 'webp', 'zip'] as const) {
    await run(cutout, { format, density, icc: await p3Profile() });
    t.is(difference(cutout.data, before).max, 0);
  }
});

test('auto is jpg for opaque images and png for all others', (t) => {
  const size = { width: 10, height: 10 };
  t.is(resolveFormat('auto', { ...size, opaque: true, channels: 'rgba' }), 'jpg');
  t.is(resolveFormat('auto', { ...size, opaque: false, channels: 'rgba' }), 'png');
  t.is(resolveFormat('auto', { ...size, opaque: true, channels: 'alpha' }), 'png');
  t.is(resolveFormat('auto', { width: 70_000, height: 10, opaque: true, channels: 'rgba' }), 'png');
  t.is(resolveFormat('webp', { ...size, opaque: true, channels: 'rgba' }), 'webp');
});

test('a result that the format cannot hold is refused with the reason', (t) => {
  const error = t.throws(() => assertFits('webp', { width: 16_384, height: 5 }), { instanceOf: ImageError });
  t.like(error, {
    code: 'invalid_format',
    detail:
      'Expected png, jpg or zip, received "webp": the result has 16384x5 pixels, webp holds at most 16383 a side.',
  });
  t.throws(() => assertFits('jpg', { width: 5, height: 65_501 }), { instanceOf: ImageError });
  for (const format of ['auto', 'png'] as const) {
    t.notThrows(() => assertFits(format, { width: 65_535, height: 5 }));
    const tooLong = t.throws(() => assertFits(format, { width: 65_536, height: 5 }), {
      instanceOf: ImageError,
    });
    t.is(tooLong.code, 'resolution_too_high');
  }
  t.throws(() => assertFits('zip', { width: 5, height: 65_501 }), { instanceOf: ImageError });
  t.notThrows(() => assertFits('webp', { width: 16_383, height: 5 }));
  t.notThrows(() => assertFits('jpg', { width: 65_500, height: 5 }));
});

test('the largest accepted sides can be encoded', async (t) => {
  const thin = (side: number): Raster => ({
    width: side,
    height: 2,
    data: new Uint8Array(side * 8).fill(255),
  });
  t.is((await sharp((await run(thin(65_500), { format: 'jpg' })).bytes).metadata()).width, 65_500);
  t.is((await sharp((await run(thin(16_383), { format: 'webp' })).bytes).metadata()).width, 16_383);
});

test('after an abort no file is returned', async (t) => {
  const signal = AbortSignal.abort(new Error('client gone'));
  for (const format of ['jpg', 'webp', 'zip'] as const) {
    await t.throwsAsync(run(cutout, { format, signal }), { message: 'client gone' });
  }
});

const recorded = new URL('../../../../../shared/data/recorded/zip-person-in-field.zip', import.meta.url);

/** Everything in a ZIP's structure that does not depend on the entries' contents and the date. */
function layout(zip: Buffer): unknown[] {
  const fields: unknown[] = [];
  for (let at = 0; at < zip.length; ) {
    const signature = zip.readUInt32LE(at);
    if (signature === 0x04034b50) {
      const [name, extra] = [zip.readUInt16LE(at + 26), zip.readUInt16LE(at + 28)];
      fields.push({
        local: zip.toString('latin1', at + 30, at + 30 + name),
        version: zip.readUInt16LE(at + 4),
        flags: zip.readUInt16LE(at + 6),
        method: zip.readUInt16LE(at + 8),
        sizesEqual: zip.readUInt32LE(at + 18) === zip.readUInt32LE(at + 22),
        extra,
      });
      at += 30 + name + extra + zip.readUInt32LE(at + 18);
    } else if (signature === 0x02014b50) {
      const [name, extra, comment] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset));
      fields.push({
        central: zip.toString('latin1', at + 46, at + 46 + (name ?? 0)),
        madeBy: zip.readUInt16LE(at + 4),
        version: zip.readUInt16LE(at + 6),
        flags: zip.readUInt16LE(at + 8),
        method: zip.readUInt16LE(at + 10),
        extra,
        comment,
        attributes: zip.readUInt32LE(at + 38),
      });
      at += 46 + (name ?? 0) + (extra ?? 0) + (comment ?? 0);
    } else {
      fields.push({
        end: zip.length - at,
        entries: zip.readUInt16LE(at + 10),
        comment: zip.readUInt16LE(at + 20),
      });
      break;
    }
  }
  return fields;
}

test('a zip has the layout of the recorded answers, byte for byte except contents, checksums and date', async (t) => {
  const { bytes } = await run(cutout, { format: 'zip' });
  const entry = { version: 20, flags: 0, method: 0, extra: 0 };
  const local = { ...entry, sizesEqual: true };
  const central = { ...entry, comment: 0 };
  const seen = layout(bytes);
  t.like(seen[0], { local: 'color.jpg', ...local });
  t.like(seen[1], { local: 'alpha.png', ...local });
  t.like(seen[2], { central: 'color.jpg', ...central });
  t.like(seen[3], { central: 'alpha.png', ...central });
  t.deepEqual(seen[4], { end: 22, entries: 2, comment: 0 });
  t.is(seen.length, 5);
  if (!existsSync(recorded)) {
    sayLeftOut(t, '../shared/data/recorded is not here: the layout is compared with its known fields only');
    return;
  }
  t.deepEqual(seen, layout(readFileSync(recorded)));
});
