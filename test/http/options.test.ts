import anyTest, { type TestFn } from 'ava';
import { unzipSync } from 'fflate';
import sharp from 'sharp';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { tagWebp } from '../../src/image/fileMetadata.ts';
import type { RequestRecord } from '../../src/ops/record.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { displayP3, PRIMARIES, rgbProfile } from '../fixtures/icc.ts';
import { imageHost } from '../fixtures/imageHost.ts';
import { scene } from '../fixtures/images.ts';
import { errorOf, eventually, form, type Service, startService } from '../fixtures/service.ts';

/** The matte is exact (all but white is subject); everything composed is the real engine's. */
const test = anyTest as TestFn<{ engine: Engine }>;
test.before((t) => {
  t.context.engine = createEngine(loadAddon(), engineOptions());
});
test.after.always((t) => t.context.engine.close(0));

const box = { left: 60, top: 40, width: 120, height: 80 };
const colour = [200, 40, 60];
/** 300 x 200 with the box as subject. */
const photo = () => scene({ width: 300, height: 200, subject: box, format: 'png' });

interface Got {
  readonly width: number;
  readonly height: number;
  readonly type: string | null;
  /** Top, left, width, height of the subject, as reported. */
  readonly foreground: readonly number[];
  readonly charged: string | null;
  readonly at: (x: number, y: number) => number[];
  readonly bytes: Buffer;
}

async function read(answer: Response): Promise<Got> {
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (answer.status !== 200) throw new Error(`${answer.status} ${bytes}`);
  const zip = answer.headers.get('content-type') === 'application/zip';
  const image = zip
    ? undefined
    : await sharp(bytes, { ignoreIcc: true }).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  const header = (name: string) => Number(answer.headers.get(name));
  const width = header('x-width');
  return {
    width,
    height: header('x-height'),
    type: answer.headers.get('content-type'),
    foreground: ['top', 'left', 'width', 'height'].map((side) => header(`x-foreground-${side}`)),
    charged: answer.headers.get('x-credits-charged'),
    at: (x, y) => [...(image?.data.subarray((y * width + x) * 4, (y * width + x) * 4 + 4) ?? [])],
    bytes,
  };
}

type Fields = Record<string, string | Buffer>;
const cut = async (service: Service, fields: Fields, image?: Buffer) =>
  read(await service.post(form({ image_file: image ?? (await photo()), format: 'png', ...fields })));

const clear = [0, 0, 0, 0];
const solid = [...colour, 255];

test('crop: the subject only, at the same price', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const got = await cut(service, { crop: 'true', size: 'full' });
  t.deepEqual([got.width, got.height], [120, 80]);
  t.deepEqual(got.foreground, [0, 0, 120, 80]);
  t.is(got.charged, '1');
  t.deepEqual(got.at(0, 0), solid);
  t.deepEqual(got.at(119, 79), solid);
});

test('crop=false and crop=0 cut nothing, and the margin has no effect then', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  for (const crop of ['false', '0', 'FALSE', '']) {
    const got = await cut(service, { crop, crop_margin: '40px' });
    t.deepEqual([got.width, got.height], [300, 200]);
  }
});

const margins = [
  ['10px', [140, 100], [10, 10]],
  ['10%', [144, 96], [8, 12]],
  ['0 5px', [130, 80], [0, 5]],
  ['1px 2px 3px 4px', [126, 84], [1, 4]],
  ['90%', [240, 160], [40, 60]],
  ['700px', [1120, 1080], [500, 500]],
] as const;

for (const [margin, size, at] of margins) {
  test(`crop_margin=${margin}`, async (t) => {
    const service = await startService(t, { engine: t.context.engine });
    const got = await cut(service, { crop: '1', crop_margin: margin });
    t.deepEqual([got.width, got.height], [...size]);
    t.deepEqual(got.foreground, [...at, 120, 80]);
    const [top, left] = at;
    t.deepEqual(got.at(left, top), solid);
    t.deepEqual(got.at(left + 119, top + 79), solid);
    if (top > 0 && left > 0) t.deepEqual(got.at(left - 1, top - 1), clear);
  });
}

test('roi: foreground lies inside only; the canvas stays', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const [plan] = [await cut(service, { roi: '0 0 50% 100%' })];
  t.deepEqual([plan.width, plan.height], [300, 200]);
  t.deepEqual(service.engine.plans.at(-1)?.roi, { left: 0, top: 0, width: 150, height: 200 });
  await cut(service, { roi: '10px 20px 290px 90%' });
  t.deepEqual(service.engine.plans.at(-1)?.roi, { left: 10, top: 20, width: 280, height: 160 });
});

test('roi is in pixels of the upright input, whatever the size of the result', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const large = await scene({ width: 1200, height: 800 });
  await cut(service, { roi: '0px 0px 600px 800px', size: 'preview' }, large);
  t.deepEqual(service.engine.plans.at(-1)?.roi, { left: 0, top: 0, width: 306, height: 408 });
});

test('scale and position: the subject moves, the canvas stays', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const half = await cut(service, { scale: '20%' });
  t.deepEqual([half.width, half.height], [300, 200]);
  t.deepEqual(half.foreground, [80, 120, 60, 40], 'centred when it is scaled');
  t.deepEqual(half.at(150, 100), solid);
  t.deepEqual(half.at(119, 100), clear);
  const most = await cut(service, { scale: '100%' });
  t.deepEqual(most.foreground, [0, 0, 300, 200], 'enlarged until it fills the canvas');
  t.deepEqual(most.at(150, 100), solid);
  for (const [position, top, left] of [
    ['0%', 0, 0],
    ['100%', 120, 180],
    ['center', 60, 90],
    ['0% 100%', 120, 0],
    ['original', 40, 60],
  ] as const) {
    const got = await cut(service, { position });
    t.deepEqual(got.foreground, [top, left, 120, 80], position);
    t.deepEqual(got.at(left, top), solid);
  }
});

test('scale=original position=original changes nothing', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const plain = await cut(service, {});
  const asked = await cut(service, {
    scale: 'original',
    position: 'original',
    roi: '0% 0% 100% 100%',
    crop: 'false',
  });
  t.true(plain.bytes.equals(asked.bytes));
});

for (const [text, rgba] of [
  ['81d4fa', [0x81, 0xd4, 0xfa, 255]],
  ['#FFF', [255, 255, 255, 255]],
  ['green', [0, 128, 0, 255]],
  ['81d4fa77', [0x81, 0xd4, 0xfa, 0x77]],
] as const) {
  test(`bg_color=${text}`, async (t) => {
    const service = await startService(t, { engine: t.context.engine });
    const got = await cut(service, { bg_color: text });
    t.deepEqual(got.at(5, 5), [...rgba]);
    t.deepEqual(got.at(100, 80), solid);
    t.deepEqual(got.foreground, [40, 60, 120, 80]);
    const auto = await cut(service, { bg_color: text, format: 'auto' });
    t.is(auto.type, rgba[3] === 255 ? 'image/jpeg' : 'image/png', 'JPG when nothing is transparent');
  });
}

test('bg_color=transparent is no background', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  t.deepEqual((await cut(service, { bg_color: 'transparent' })).at(5, 5), clear);
});

/** Red left, green middle, blue right. */
async function stripes(width: number, height: number): Promise<Buffer> {
  const data = Buffer.alloc(width * height * 3);
  for (let i = 0; i < width * height; i++) data[i * 3 + Math.floor(((i % width) * 3) / width)] = 255;
  return sharp(data, { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer();
}

test('bg_image_file: unchanged at the size of the canvas, else scaled to cover it, centred', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const exact = await cut(service, { bg_image_file: await stripes(300, 200) });
  t.deepEqual(exact.at(99, 5), [255, 0, 0, 255]);
  t.deepEqual(exact.at(100, 5), [0, 255, 0, 255]);
  t.deepEqual(exact.at(299, 199), [0, 0, 255, 255]);
  t.deepEqual(exact.at(100, 80), solid);
  // Three times as wide as the canvas: only the middle stripe is left.
  const wide = await cut(service, { bg_image_file: await stripes(900, 200) });
  t.deepEqual(wide.at(5, 5), [0, 255, 0, 255]);
  t.deepEqual(wide.at(295, 195), [0, 255, 0, 255]);
  // Smaller: it is enlarged.
  t.deepEqual((await cut(service, { bg_image_file: await stripes(30, 20) })).at(150, 5), [0, 255, 0, 255]);
  // It covers the canvas of a crop too.
  const cropped = await cut(service, {
    bg_image_file: await stripes(900, 100),
    crop: 'true',
    crop_margin: '10px',
  });
  t.deepEqual([cropped.width, cropped.height], [140, 100]);
  t.deepEqual(cropped.at(2, 2), [0, 255, 0, 255]);
});

test.serial('bg_image_url is downloaded as image_url is', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const image = await stripes(300, 200);
  const base = await imageHost(
    t,
    (req, res) => void (req.url === '/ok.png' ? res.end(image) : res.writeHead(404).end()),
  );
  t.deepEqual((await cut(service, { bg_image_url: `${base}/ok.png` })).at(5, 5), [255, 0, 0, 255]);
  const answer = await service.post(form({ image_file: await photo(), bg_image_url: `${base}/no.png` }));
  t.deepEqual(await errorOf(t, answer), {
    title: `Failed to download background image from given image_url: ${base}/no.png`,
    code: 'failed_bg_download',
    detail: 'HTTP Status 404',
  });
});

for (const [name, profile] of [
  ['Display P3', displayP3],
  ['Adobe RGB', async () => rgbProfile(PRIMARIES.adobe, { gamma: 2.19921875 })],
] as const) {
  test(`an image in ${name} keeps its colours and profile, and backgrounds keep their appearance`, async (t) => {
    const service = await startService(t, { engine: t.context.engine });
    const icc = await profile();
    const webp = await sharp(await photo())
      .webp({ lossless: true })
      .toBuffer();
    const image = tagWebp(webp, { icc }, { width: 300, height: 200 });
    const seen = async (bytes: Buffer, x: number, y: number) => {
      const data = await sharp(bytes).toColourspace('srgb').removeAlpha().raw().toBuffer();
      return [...data.subarray((y * 300 + x) * 3, (y * 300 + x) * 3 + 3)];
    };
    const near = (got: readonly number[], wanted: readonly number[]) =>
      t.true(
        wanted.every((value, i) => Math.abs((got[i] ?? -9) - value) <= 2),
        `${got}, wanted ${wanted}`,
      );

    const striped = await cut(service, { bg_image_file: await stripes(300, 200) }, image);
    t.deepEqual(Buffer.from((await sharp(striped.bytes).metadata()).icc ?? []), icc);
    t.deepEqual(striped.at(100, 100), solid, 'the subject as it was stored');
    t.notDeepEqual(striped.at(5, 5), [255, 0, 0, 255]);
    near(await seen(striped.bytes, 5, 5), [255, 0, 0]);
    const coloured = await cut(service, { bg_color: '2080c0' }, image);
    t.deepEqual(coloured.at(100, 100), solid);
    near(await seen(coloured.bytes, 5, 5), [0x20, 0x80, 0xc0]);
    // A background in the same space is not converted.
    const same = await cut(service, { bg_image_file: image }, image);
    t.deepEqual(same.at(100, 100), solid);
    t.deepEqual(same.at(5, 5), [255, 255, 255, 255]);
    const other = tagWebp(
      await sharp(await stripes(300, 200))
        .webp({ lossless: true })
        .toBuffer(),
      { icc },
      { width: 300, height: 200 },
    );
    t.deepEqual((await cut(service, { bg_image_file: other }, image)).at(5, 5), [255, 0, 0, 255]);
  });
}

test.serial('errors of the image and its roi are reported before bg_image_url is fetched', async (t) => {
  const service = await startService(t, { engine: t.context.engine, ttlSeconds: 600 });
  let asked = 0;
  const base = await imageHost(t, (_req, res) => {
    asked += 1;
    res.writeHead(404).end();
  });
  const bg_image_url = `${base}/no.png`;
  const code = async (fields: Fields) =>
    (await errorOf(t, await service.post(form({ image_file: await photo(), bg_image_url, ...fields })))).code;
  t.is(await code({ image_file: Buffer.from('text') }), 'invalid_file_type');
  t.is(await code({ roi: '0 0 301px 10px' }), 'roi_exceeds_bounds');
  t.is(await code({ roi: '9px 9px 9px 20px' }), 'roi_region_empty');
  const huge = await photo();
  huge.writeUInt32BE(8000, 16);
  huge.writeUInt32BE(8000, 20);
  t.is(await code({ image_file: huge }), 'resolution_too_high');
  t.is(asked, 0);
  t.is(await code({ roi: '0 0 300px 10px' }), 'failed_bg_download');
  t.is(asked, 1);
});

test('a result that its format cannot hold is refused and free; before the work unless a crop decides', async (t) => {
  const service = await startService(t, { engine: t.context.engine, credits: 1 });
  const wide = await scene({
    width: 16_400,
    height: 40,
    subject: { left: 100, top: 10, width: 16_250, height: 20 },
    format: 'png',
  });
  const post = (fields: Fields) => service.post(form({ image_file: wide, size: 'full', ...fields }));
  const detail = async (fields: Fields) => {
    const error = await errorOf(t, await post(fields));
    t.is(error.code, 'invalid_format');
    return error.detail;
  };
  const holds = 'pixels, webp holds at most 16383 a side.';
  t.is(
    await detail({ format: 'webp' }),
    `Expected png, jpg or zip, received "webp": the result has 16400x40 ${holds}`,
  );
  t.is(service.engine.started, 0);
  t.is(
    await detail({ format: 'webp', crop: 'true', crop_margin: '0 100px' }),
    `Expected png, jpg or zip, received "webp": the result has 16450x20 ${holds}`,
  );
  t.is(service.engine.started, 1);
  t.is((await service.balance()).credits, 1);
  t.is(await service.stores.ledger.openReservations(), 0);
  // Without the margin it fits. Of the two refused calls the one that was decoded counts.
  const cropped = await post({ format: 'webp', crop: 'true' });
  t.is(cropped.headers.get('x-width'), '16250');
  t.is(cropped.headers.get('x-credits-charged'), '1');
  t.is(cropped.headers.get('x-ratelimit-remaining'), '498');
});

test('everything that a request decodes counts in the rate, and is timed as decoding', async (t) => {
  const spans: string[] = [];
  const recorders = [(record: RequestRecord) => void spans.push(...record.spans.map(({ stage }) => stage))];
  const service = await startService(t, { engine: t.context.engine, recorders, freePreviews: 0 });
  const scenery = await scene({ width: 2000, height: 1250 });
  const answer = await service.post(
    form({ image_file: await photo(), mask_file: await photo(), bg_image_file: scenery, size: 'preview' }),
  );
  t.is(answer.headers.get('x-ratelimit-remaining'), '497', 'rounded up from 2.62 megapixels');
  t.is(answer.headers.get('x-credits-charged'), '0.25');
  await answer.arrayBuffer();
  await eventually(() => spans.length > 0);
  const decoded = spans.filter((stage) => ['decode', 'matte', 'compose'].includes(stage));
  t.deepEqual(decoded, ['decode', 'matte', 'decode', 'compose']);
});

test('an invalid or too large background is refused as an image is', async (t) => {
  const service = await startService(t, { engine: t.context.engine, credits: 1 });
  const code = async (bg_image_file: Buffer) =>
    (await errorOf(t, await service.post(form({ image_file: await photo(), bg_image_file, size: 'full' }))))
      .code;
  t.is(await code(Buffer.from('text')), 'invalid_file_type');
  t.is(await code(Buffer.alloc(22 * 1024 * 1024 + 1)), 'file_too_large');
  const huge = await photo();
  huge.writeUInt32BE(8000, 16);
  huge.writeUInt32BE(8000, 20);
  t.is(await code(huge), 'resolution_too_high');
  const jpeg = await scene({ width: 800, height: 600 });
  t.is(await code(jpeg.subarray(0, jpeg.length - 300)), 'failed_to_read_image');
  t.is((await service.balance()).credits, 1);
});

const drawn = (got: Got): boolean => {
  const [, , , alpha = 0] = got.at(120, 122);
  return alpha > 0;
};

test('shadows: which subjects get one, and its strength', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const cases: [Fields, boolean][] = [
    [{}, false],
    [{ add_shadow: 'true' }, true],
    [{ add_shadow: 'true', type: 'person' }, true],
    [{ shadow_type: 'drop' }, true],
    [{ shadow_type: 'DROP', type: 'car' }, true],
    [{ shadow_type: 'none', add_shadow: 'true' }, false],
    [{ shadow_type: 'car' }, false],
    [{ shadow_type: '3D' }, false],
    [{ shadow_type: 'auto', type: 'product' }, true],
    [{ shadow_type: 'auto', type: 'person' }, false],
    [{ 'shadow_type[product]': 'drop', type: 'product' }, true],
    [{ 'shadow_type[product]': 'drop', type: 'animal' }, false],
    [{ shadow_type: 'drop', shadow_opacity: '0' }, false],
    [{ shadow_type: 'drop', 'shadow_opacity[animal]': '0', type: 'animal' }, false],
  ];
  for (const [fields, expected] of cases) {
    const got = await cut(service, fields);
    t.is(drawn(got), expected, JSON.stringify(fields));
    t.deepEqual(got.foreground, [40, 60, 120, 80], 'the box is that of the subject');
    t.deepEqual(got.at(100, 80), solid);
  }
  const alpha = async (shadow_opacity: string) =>
    (await cut(service, { add_shadow: '1', shadow_opacity })).at(120, 121)[3] ?? 0;
  const [light, dark] = [await alpha('20'), await alpha('80')];
  t.true(Math.abs(dark - 4 * light) <= 4, `${light} and ${dark}`);
});

test('shadow_type as a nested object in JSON, and as a bracket key in a form', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const image_file_b64 = (await photo()).toString('base64');
  const json = { image_file_b64, format: 'png', type: 'product', shadow_type: { product: 'drop' } };
  t.true(drawn(await read(await service.post(JSON.stringify(json), { 'Content-Type': 'application/json' }))));
  const encoded = new URLSearchParams({
    image_file_b64,
    format: 'png',
    type: 'product',
    'shadow_type[product]': 'drop',
  });
  t.true(drawn(await read(await service.post(encoded))));
});

test('a crop contains the shadow', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const got = await cut(service, { crop: 'true', add_shadow: 'true' });
  t.true(got.width > 120 && got.height > 80);
  const [top = 0, left = 0, width = 0, height = 0] = got.foreground;
  t.deepEqual([width, height], [120, 80]);
  t.true(left > 0 && top > 0 && left + width < got.width && top + height < got.height);
});

test('channels=alpha: the matte of the subject, without shadow and background', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const got = await cut(service, {
    channels: 'alpha',
    add_shadow: 'true',
    bg_color: 'red',
    crop: 'true',
    crop_margin: '10px',
  });
  t.deepEqual([got.width, got.height], [140, 100]);
  t.is((await sharp(got.bytes).metadata()).channels, 1);
  t.deepEqual(got.at(5, 5), [0, 0, 0, 255]);
  t.deepEqual(got.at(70, 50), [255, 255, 255, 255]);
});

async function unzipped(bytes: Buffer) {
  const entries = unzipSync(bytes);
  const [color, alpha] = await Promise.all(
    ['color.jpg', 'alpha.png'].map(async (name) => {
      const { channels } = await sharp(entries[name]).metadata();
      const { data, info } = await sharp(entries[name]).removeAlpha().toColourspace('srgb').raw().toBuffer({
        resolveWithObject: true,
      });
      const { width, height } = info;
      const at = (x: number, y: number) => [...data.subarray((y * width + x) * 3, (y * width + x) * 3 + 3)];
      return { channels, size: [width, height], at };
    }),
  );
  if (!color || !alpha) throw new Error('an entry is missing');
  return { color, alpha };
}

const near = (colour: readonly number[], expected: readonly number[]) =>
  colour.every((value, i) => Math.abs(value - (expected[i] ?? 0)) < 6);

test('zip: the original background stays in color.jpg, also when it is cropped', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  // A background that is not white shows that it is kept: nearly white counts as background too.
  const image = await sharp({ create: { width: 300, height: 200, channels: 3, background: '#f0fff0' } })
    .composite([
      { input: { create: { ...box, channels: 3, background: { r: 200, g: 40, b: 60 } } }, left: 60, top: 40 },
    ])
    .png()
    .toBuffer();
  const { color, alpha } = await unzipped(
    (await cut(service, { format: 'zip', crop: 'true', crop_margin: '20px' }, image)).bytes,
  );
  t.deepEqual([color.channels, color.size], [3, [160, 120]]);
  t.deepEqual([alpha.channels, alpha.size], [1, [160, 120]]);
  t.deepEqual(alpha.at(0, 0), [0, 0, 0]);
  t.deepEqual(alpha.at(80, 60), [255, 255, 255]);
  t.true(near(color.at(2, 2), [0xf0, 0xff, 0xf0]), `${color.at(2, 2)}`);
  t.true(near(color.at(80, 60), colour), `${color.at(80, 60)}`);
});

test('zip with a background: the pair shows what the PNG would', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const { color, alpha } = await unzipped((await cut(service, { format: 'zip', bg_color: '0000ff' })).bytes);
  t.deepEqual(alpha.at(0, 0), [255, 255, 255]);
  t.true(near(color.at(0, 0), [0, 0, 255]), `${color.at(0, 0)}`);
});

const invalid: readonly (readonly [Fields, string])[] = [
  [{ roi: '10 10 20 20' }, 'invalid_roi'],
  [{ roi: '0% 0% 100%' }, 'invalid_roi'],
  [{ roi: '0px 0px 301px 10px' }, 'roi_exceeds_bounds'],
  [{ roi: '0% 0% 101% 100%' }, 'roi_exceeds_bounds'],
  [{ roi: '50% 0% 50% 100%' }, 'roi_region_empty'],
  [{ roi: '60% 0% 50% 100%' }, 'roi_region_empty'],
  [{ crop: 'yes' }, 'invalid_crop'],
  [{ crop_margin: '10' }, 'invalid_crop_margin'],
  [{ crop_margin: '1px 2px 3px' }, 'invalid_crop_margin'],
  [{ scale: '5%' }, 'invalid_scale'],
  [{ scale: '50' }, 'invalid_scale'],
  [{ position: 'left' }, 'invalid_position'],
  [{ position: '101%' }, 'invalid_position'],
  [{ lossless: 'maybe' }, 'invalid_lossless'],
  [{ add_shadow: '2' }, 'invalid_add_shadow'],
  [{ shadow_type: 'soft' }, 'invalid_shadow_type'],
  [{ 'shadow_type[house]': 'drop' }, 'invalid_shadow_type'],
  [{ shadow_opacity: '101' }, 'invalid_shadow_opacity'],
  [{ 'shadow_opacity[car]': '-1' }, 'invalid_shadow_opacity'],
  [{ semitransparency: 'maybe' }, 'invalid_semitransparency'],
  [{ bg_color: '#12345' }, 'invalid_bg_color'],
  [{ bg_color: 'nocolour' }, 'invalid_bg_color'],
  [{ bg_image_url: 'image.png' }, 'invalid_bg_image_url'],
  [{ bg_color: 'red', bg_image_url: 'http://a.public.test/' }, 'multiple_bg_sources'],
  [{ bg_color: 'transparent', bg_image_file: Buffer.from('x') }, 'multiple_bg_sources'],
];

for (const [fields, code] of invalid) {
  test(`${Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')} is ${code}`, async (t) => {
    const service = await startService(t, { engine: t.context.engine });
    const answer = await service.post(form({ image_file: await photo(), ...fields }));
    t.is(answer.status, 400);
    const error = await errorOf(t, answer);
    t.is(error.code, code);
    if (/^invalid_(?!bg_image)/.test(code)) t.regex(error.detail, /^Expected .*, received ".*"\.$/);
    t.is(service.engine.started, 0);
  });
}

test('the first invalid option is the one reported', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const all: Fields = {
    bg_image_url: 'nowhere',
    bg_color: 'x',
    semitransparency: 'x',
    shadow_opacity: 'x',
    shadow_type: 'x',
    add_shadow: 'x',
    position: 'x',
    scale: 'x',
    crop_margin: 'x',
    crop: 'x',
    roi: 'x',
    channels: 'x',
    lossless: 'x',
    format: 'x',
    type_level: 'x',
    type: 'x',
    size: 'x',
  };
  const reported: string[] = [];
  for (let i = 0; i < 20; i++) {
    const answer = await service.post(form({ ...(i > 0 && { image_file: await photo() }), ...all }));
    const { code } = await errorOf(t, answer);
    reported.push(code);
    if (code === 'multiple_bg_sources') delete all['bg_image_url'];
    const field = /^invalid_(.*)$/.exec(code)?.[1];
    if (field) delete all[field];
    if (field === 'bg_color') break;
  }
  t.deepEqual(reported, [
    'missing_source',
    'multiple_bg_sources',
    'invalid_size',
    'invalid_type',
    'invalid_type_level',
    'invalid_format',
    'invalid_lossless',
    'invalid_channels',
    'invalid_roi',
    'invalid_crop',
    'invalid_crop_margin',
    'invalid_scale',
    'invalid_position',
    'invalid_add_shadow',
    'invalid_shadow_type',
    'invalid_shadow_opacity',
    'invalid_semitransparency',
    'invalid_bg_color',
  ]);
});

test('a shadow depends on the classified type, opacity included', async (t) => {
  const shadowOf = async (kind: 'car' | 'person' | 'product') => {
    const service = await startService(t, { subjectTypes: true, engine: t.context.engine });
    service.engine.subject = kind;
    const answer = await service.post(
      form({
        image_file: await scene(),
        type_level: 'none',
        format: 'png',
        'shadow_type[car]': 'drop',
        'shadow_type[product]': 'drop',
      }),
    );
    const { data } = await sharp(await answer.arrayBuffer())
      .raw()
      .toBuffer({ resolveWithObject: true });
    let strongest = 0;
    for (let at = 0; at < data.length; at += 4) {
      const [r = 0, g = 0, b = 0, a = 0] = data.subarray(at, at + 4);
      if (a < 255 && r + g + b === 0) strongest = Math.max(strongest, a);
    }
    return strongest / 255;
  };
  t.is(await shadowOf('person'), 0);
  const [car, product] = [await shadowOf('car'), await shadowOf('product')];
  t.true(product > 0.1 && product <= 0.5, `${product}`);
  t.true(car > product * 1.5, `${car}`);
});
