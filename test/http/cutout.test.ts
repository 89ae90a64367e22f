import test from 'ava';
import sharp from 'sharp';
import { scene } from '../fixtures/images.ts';
import { errorOf, eventually, form, startService } from '../fixtures/service.ts';

const box = { left: 60, top: 40, width: 150, height: 90 };

test('a multipart upload returns the image with every header of success', async (t) => {
  const service = await startService(t);
  const photo = await scene({ width: 300, height: 200, subject: box, format: 'png' });
  const answer = await service.post(form({ image_file: photo, size: 'full' }));
  t.is(answer.status, 200);
  t.is(answer.headers.get('content-type'), 'image/png');
  const bytes = Buffer.from(await answer.arrayBuffer());
  t.is(Number(answer.headers.get('content-length')), bytes.length);
  t.is(answer.headers.get('transfer-encoding'), null);
  t.is(answer.headers.get('content-encoding'), null);
  t.like(Object.fromEntries(answer.headers), {
    'x-type': 'other',
    'x-width': '300',
    'x-height': '200',
    'x-max-width': '300',
    'x-max-height': '200',
    'x-credits-charged': '1',
    'x-foreground-top': '40',
    'x-foreground-left': '60',
    'x-foreground-width': '150',
    'x-foreground-height': '90',
    'access-control-allow-origin': '*',
  });
  const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
  t.is(info.channels, 4);
  t.deepEqual([...data.subarray(0, 4)], [0, 0, 0, 0]);
  const middle = (85 * 300 + 135) * 4;
  t.deepEqual([...data.subarray(middle, middle + 4)], [200, 40, 60, 255]);
});

test('removebg is an alias', async (t) => {
  const service = await startService(t);
  const answer = await fetch(`${service.url}/v1.0/removebg`, {
    method: 'POST',
    headers: { 'x-api-key': service.key },
    body: form({ image_file: await scene() }),
  });
  t.is(answer.status, 200);
  t.is(answer.headers.get('x-credits-charged'), '0');
});

const accepts = [
  ['application/json', true],
  ['APPLICATION/JSON; charset=utf-8', true],
  ['text/html, application/json;q=0.1', true],
  ['application/json;q=0', false],
  ['application/json, text/plain', true],
  ['application/json, */*;q=0', true],
  ['application/json, image/png; q=0.0', true],
  // axios; n8n's HTTP node; a program that takes any file
  ['application/json, text/plain, */*', false],
  [
    'application/json,text/html,application/xhtml+xml,application/xml,text/*;q=0.9, image/*;q=0.8, */*;q=0.7',
    false,
  ],
  ['application/json, image/*;q=0.1', false],
  ['application/json, IMAGE/WEBP', false],
  ['application/json, application/octet-stream', false],
  ['application/json, application/zip', false],
  ['*/*', false],
  ['application/*', false],
  ['image/*', false],
  ['image/png', false],
] as const;

for (const [accept, json] of accepts) {
  test(`Accept: ${accept} gives ${json ? 'JSON' : 'the image'}`, async (t) => {
    const service = await startService(t);
    const answer = await service.post(form({ image_file: await scene({ subject: box, format: 'png' }) }), {
      Accept: accept,
    });
    t.is(answer.status, 200);
    t.is(answer.headers.get('x-foreground-width'), '150');
    if (!json) {
      t.is(answer.headers.get('content-type'), 'image/png');
      return;
    }
    t.is(answer.headers.get('content-type'), 'application/json; charset=utf-8');
    const body = (await answer.json()) as { data: { result_b64: string } };
    t.deepEqual(Object.keys(body), ['data']);
    t.deepEqual(Object.keys(body.data), [
      'result_b64',
      'foreground_top',
      'foreground_left',
      'foreground_width',
      'foreground_height',
      'uncertainty',
    ]);
    t.like(body.data, {
      foreground_top: 40,
      foreground_left: 60,
      foreground_width: 150,
      foreground_height: 90,
      uncertainty: 0.1,
    });
    t.is(answer.headers.get('x-uncertainty-score'), '0.1');
    const { width, format } = await sharp(Buffer.from(body.data.result_b64, 'base64')).metadata();
    t.deepEqual({ width, format }, { width: 300, format: 'png' });
  });
}

const sizes = [
  ['preview', 612, 408],
  ['small', 612, 408],
  ['REGULAR', 612, 408],
  ['medium', 1500, 1000],
  ['hd', 2400, 1600],
  ['full', 2400, 1600],
  ['4K', 2400, 1600],
  ['50mp', 2400, 1600],
  ['auto', 2400, 1600],
  ['', 612, 408],
] as const;

for (const [size, width, height] of sizes) {
  test(`size=${size || '(absent)'} of 2400x1600 is ${width}x${height}`, async (t) => {
    const service = await startService(t);
    const photo = await scene({ width: 2400, height: 1600 });
    const answer = await service.post(form({ image_file: photo, size }));
    t.is(answer.status, 200);
    const got = await sharp(Buffer.from(await answer.arrayBuffer())).metadata();
    t.deepEqual([got.width, got.height], [width, height]);
    t.is(answer.headers.get('x-width'), String(width));
    t.is(answer.headers.get('x-height'), String(height));
    t.is(answer.headers.get('x-max-width'), '2400');
    t.is(answer.headers.get('x-credits-charged'), width === 612 ? '0' : '1');
    // A preview decodes no more than the network and the answer need.
    t.deepEqual(service.engine.decoded, [{ width, height }]);
  });
}

const formats = [
  ['auto', 'image/png', 'png'],
  ['png', 'image/png', 'png'],
  ['JPG', 'image/jpeg', 'jpeg'],
  ['jpeg', 'image/jpeg', 'jpeg'],
  ['webp', 'image/webp', 'webp'],
] as const;

for (const [asked, type, format] of formats) {
  for (const channels of ['rgba', 'alpha']) {
    test(`format=${asked} channels=${channels}`, async (t) => {
      const service = await startService(t);
      const photo = await scene({ subject: box });
      const answer = await service.post(form({ image_file: photo, format: asked, channels }));
      t.is(answer.headers.get('content-type'), type);
      const image = sharp(Buffer.from(await answer.arrayBuffer()));
      t.is((await image.metadata()).format, format);
      const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
      const middle = data[(85 * 300 + 135) * info.channels] ?? -1;
      const corner = data[0] ?? -1;
      if (channels === 'alpha') t.deepEqual([corner < 4, middle > 251], [true, true]);
      else t.true(Math.abs(middle - 200) < 6, `${middle}`);
      if (channels === 'rgba') t.is(info.channels, format === 'jpeg' ? 3 : 4);
      if (channels === 'rgba' && format === 'jpeg') t.true(corner > 250, 'white behind the subject');
    });
  }
}

test('format=auto is JPG when every pixel of the result is opaque', async (t) => {
  const service = await startService(t);
  const answer = await service.post(form({ image_file: await scene({ subject: 'all' }) }));
  t.is(answer.headers.get('content-type'), 'image/jpeg');
});

test('format=zip is color.jpg then alpha.png, stored', async (t) => {
  const service = await startService(t);
  const answer = await service.post(form({ image_file: await scene({ subject: box }), format: 'zip' }));
  t.is(answer.headers.get('content-type'), 'application/zip');
  const zip = Buffer.from(await answer.arrayBuffer());
  t.is(zip.readUInt32LE(0), 0x04034b50);
  t.is(zip.readUInt16LE(8), 0);
  t.is(zip.toString('latin1', 30, 39), 'color.jpg');
  t.true(zip.includes('alpha.png'));
  t.like(service.engine.plans[0], { hiddenColour: 'keep' });
});

test('other types than JPEG, PNG and WebP are refused by content, whatever their names', async (t) => {
  const service = await startService(t);
  for (const format of ['jpeg', 'png', 'webp'] as const)
    t.is((await service.post(form({ image_file: await scene({ format }) }))).status, 200, format);
  for (const format of ['gif', 'tiff', 'avif'] as const) {
    const data = new FormData();
    data.append(
      'image_file',
      new Blob([new Uint8Array(await scene({ format }))], { type: 'image/jpeg' }),
      'a.jpg',
    );
    const error = await errorOf(t, await service.post(data));
    t.like(error, {
      code: 'invalid_file_type',
      detail: `Expected jpg/png/webp, received ${format}; the operator of this service can allow it (CUTOUT_INPUT_FORMATS)`,
    });
  }
});

const types = [
  ['', '', 'other'],
  ['auto', '2', 'other'],
  ['person', '', 'person'],
  ['graphic', '1', 'other'],
  ['graphic', '2', 'graphics'],
  ['graphics', 'latest', 'graphics'],
  ['transportation', '1', 'other'],
  ['transportation', 'latest', 'transportation'],
  ['car_interior', '1', 'car'],
  ['Product', 'none', null],
] as const;

for (const [type, level, reported] of types) {
  test(`type=${type || '(absent)'} type_level=${level || '(absent)'} is reported as ${reported}`, async (t) => {
    const service = await startService(t);
    const answer = await service.post(form({ image_file: await scene(), type, type_level: level }));
    t.is(answer.status, 200);
    t.is(answer.headers.get('x-type'), reported);
  });
}

for (const [kind, level, reported] of [
  ['animal', '1', 'animal'],
  ['graphic', '1', 'other'],
  ['graphic', '2', 'graphics'],
  ['transportation', 'latest', 'transportation'],
] as const) {
  test(`a subject classified as ${kind} is reported as ${reported} at level ${level}, a named type is not classified`, async (t) => {
    const service = await startService(t, { subjectTypes: true });
    service.engine.subject = kind;
    const ask = async (changes: Readonly<Record<string, string>>) =>
      (await service.post(form({ image_file: await scene(), type_level: level, ...changes }))).headers.get(
        'x-type',
      );
    t.is(await ask({}), reported);
    t.is(await ask({ type: 'car' }), 'car');
    t.is(await ask({ type_level: 'none' }), null);
    t.deepEqual(
      service.engine.plans.map(({ subject }) => subject),
      [true, undefined, undefined],
    );
  });
}

test('prices: free previews first, then a quarter for a preview, one for larger results', async (t) => {
  const service = await startService(t, { credits: 1.5, freePreviews: 1 });
  const charged = async (size: string) => {
    const answer = await service.post(form({ image_file: await scene({ width: 900, height: 600 }), size }));
    return answer.status === 200 ? answer.headers.get('x-credits-charged') : (await errorOf(t, answer)).code;
  };
  t.is(await charged('preview'), '0');
  t.is(await charged('preview'), '0.25');
  t.is(await charged('auto'), '1');
  // A quarter is left: auto becomes a preview, a full result cannot be paid for.
  t.is(await charged('full'), 'insufficient_credits');
  t.is(await charged('auto'), '0.25');
  t.is(await charged('auto'), 'insufficient_credits');
  t.deepEqual(await service.balance(), { credits: 0, freeCalls: 0 });
});

test('errors are not charged and leave no reservation', async (t) => {
  const service = await startService(t, { credits: 1 });
  const before = await service.balance();
  await service.post(form({ image_file: await scene({ subject: 'none' }), size: 'full' }));
  await service.post(form({ image_file: (await scene()).subarray(0, 900), size: 'full' }));
  service.engine.failure = new Error('broken');
  await service.post(form({ image_file: await scene(), size: 'full' }));
  t.deepEqual(await service.balance(), before);
  t.is(await service.stores.ledger.openReservations(), 0);
  t.deepEqual(await service.stores.ledger.verify(), []);
});

test('the charge of a delivered answer survives a restart of the server', async (t) => {
  const service = await startService(t, { credits: 2 });
  const answer = await service.post(form({ image_file: await scene(), size: 'full' }));
  await answer.arrayBuffer();
  await eventually(async () => (await service.stores.ledger.openReservations()) === 0);
  t.is(await service.stores.ledger.recover(), 0);
  t.is((await service.balance()).credits, 1);
});
