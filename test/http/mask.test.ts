import test from 'ava';
import sharp from 'sharp';
import { scene } from '../fixtures/images.ts';
import { errorOf, eventually, form, startService } from '../fixtures/service.ts';

const size = { width: 300, height: 200 };

/** Left of `column` white, right of it black. */
const half = (column: number, { width, height } = size): Promise<Buffer> =>
  sharp(Buffer.from(Uint8Array.from({ length: width * height }, (_, i) => (i % width < column ? 255 : 0))), {
    raw: { width, height, channels: 1 },
  })
    .png()
    .toBuffer();

test('the mask reaches the engine, as a file or in base64, in every type of body', async (t) => {
  const service = await startService(t, { credits: 0, freePreviews: 100 });
  const image = await scene({ format: 'png' });
  const mask = await half(100);
  const json = { image_file_b64: image.toString('base64'), mask_file_b64: mask.toString('base64') };
  const bodies: readonly (readonly [string | FormData, Record<string, string>])[] = [
    [form({ image_file: image, mask_file: mask }), {}],
    [form({ image_file: image, mask_file_b64: json.mask_file_b64 }), {}],
    [JSON.stringify(json), { 'Content-Type': 'application/json' }],
    [new URLSearchParams(json).toString(), { 'Content-Type': 'application/x-www-form-urlencoded' }],
  ];
  for (const [body, headers] of bodies) {
    t.is((await service.post(body, headers)).status, 200);
    const given = service.engine.plans.at(-1)?.mask;
    t.deepEqual([given?.width, given?.height], [size.width, size.height]);
    t.deepEqual([given?.data[99], given?.data[100]], [255, 0]);
  }
  t.is((await service.post(form({ image_file: image }))).status, 200);
  t.is(service.engine.plans.at(-1)?.mask, undefined);
  await eventually(() => service.lines().length === bodies.length + 1);
  t.deepEqual(
    service.lines().map(({ guidance }) => guidance),
    [...bodies.map(() => 'mask'), undefined],
  );
});

test('a mask belongs to what identifies a request', async (t) => {
  const service = await startService(t, { ttlSeconds: 600, credits: 10 });
  const image = await scene({ format: 'png' });
  const one = await half(100);
  const replayed = async (fields: Readonly<Record<string, string | Buffer>>) => {
    const answer = await service.post(form({ image_file: image, size: 'full', ...fields }));
    t.is(answer.status, 200);
    return answer.headers.get('idempotent-replayed') === 'true';
  };
  t.false(await replayed({}));
  t.false(await replayed({ mask_file: one }));
  t.true(await replayed({ mask_file: one }));
  t.true(await replayed({ mask_file_b64: one.toString('base64') }), 'the same bytes in another form');
  t.false(await replayed({ mask_file: await half(101) }));
  t.false(await replayed({ type_level: 'none', mask_file: one }));
  t.is((await service.balance()).credits, 10 - 4);
});

test('a mask may have any size with the proportions of the image, to a pixel', async (t) => {
  const service = await startService(t);
  const image = await scene({ width: 301, height: 200, format: 'png' });
  const status = async (width: number, height: number) =>
    (await service.post(form({ image_file: image, mask_file: await half(width / 2, { width, height }) })))
      .status;
  // 612 x 406 and 100 x 66 are rounded down from the exact proportions.
  for (const [width, height] of [
    [301, 200],
    [612, 406],
    [100, 66],
    [3010, 2000],
  ] as const)
    t.is(await status(width, height), 200, `${width} x ${height}`);
  const reduced = service.engine.plans.at(-1)?.mask;
  t.deepEqual([reduced?.width, reduced?.height], [2048, 1361]);
  for (const [width, height] of [
    [200, 301],
    [301, 196],
    [300, 300],
  ] as const)
    t.is(await status(width, height), 400, `${width} x ${height}`);
});

test('faults of a mask name the mask, and the first fault of a request counts', async (t) => {
  const service = await startService(t);
  const image = await scene({ format: 'png' });
  const mask = await half(100);
  const code = async (fields: Readonly<Record<string, string | Buffer>>) => {
    const answer = await service.post(form({ image_file: image, ...fields }));
    t.is(answer.status, 400);
    return errorOf(t, answer);
  };
  t.is((await code({ mask_file: mask.subarray(0, mask.length - 20) })).code, 'invalid_mask_file');
  t.is(
    (await code({ mask_file: Buffer.from('GIF89a......') })).detail,
    'Expected jpg/png/webp, received gif; the operator of this service can allow it (CUTOUT_INPUT_FORMATS)',
  );
  t.is((await code({ mask_file_b64: '*' })).code, 'invalid_mask_file');
  t.is((await code({ mask_file_b64: 'AAAA' })).code, 'invalid_mask_file');
  t.is((await code({ mask_file: Buffer.alloc(22 * 1024 * 1024 + 1) })).code, 'file_too_large');
  t.is((await code({ mask_file: mask, mask_file_b64: 'AAAA', size: 'huge' })).code, 'multiple_masks');
  t.is((await code({ mask_file: Buffer.from('x'), size: 'huge' })).code, 'invalid_size');
  t.is((await code({ image_file: Buffer.from('x'), mask_file: Buffer.from('x') })).code, 'invalid_file_type');
  const wide = await half(100, { width: 400, height: 200 });
  const { code: shape, detail } = await code({ mask_file: wide });
  t.is(shape, 'mask_shape_mismatch');
  t.regex(detail, /300 x 200 pixels and the mask 400 x 200/);
});
