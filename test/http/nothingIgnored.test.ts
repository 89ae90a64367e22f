import { request } from 'node:http';
import anyTest, { type TestFn } from 'ava';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { insertJpegSegment } from '../fixtures/bytes.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { scene } from '../fixtures/images.ts';
import { rawRequest } from '../fixtures/rawHttp.ts';
import { errorOf, eventually, form, type Service, startService } from '../fixtures/service.ts';

/** Requests as clients send them by mistake: what they ask for is done, or the answer says that it was not. */

/** The matte is exact (all but white is subject); everything composed is the real engine's. */
const test = anyTest as TestFn<{ engine: Engine }>;
test.before((t) => {
  t.context.engine = createEngine(loadAddon(), engineOptions());
});
test.after.always((t) => t.context.engine.close(0));

const boundary = 'b';
const multipartType = `multipart/form-data; boundary=${boundary}`;

interface Part {
  readonly head: string;
  readonly body: string | Buffer;
}

const named = (name: string, more = ''): string => `Content-Disposition: form-data; name="${name}"${more}`;
const file = (name: string, body: Buffer, filename = 'a.jpg'): Part => ({
  head: named(name, `; filename="${filename}"`),
  body,
});

const multipart = (parts: readonly Part[]): Buffer =>
  Buffer.concat([
    ...parts.flatMap(({ head, body }) => [
      Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
      Buffer.from(body as Buffer),
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ]);

const send = (service: Service, parts: readonly Part[]): Promise<Response> =>
  service.post(Uint8Array.from(multipart(parts)), { 'Content-Type': multipartType });

/** A photo that is larger than a preview, so that its width says which size was made. */
const photo = () => scene({ width: 900, height: 600 });
const fullWidth = '900';
const previewWidth = '612';

const ignored = (answer: Response) => answer.headers.get('x-ignored-fields');

const optionParts: Readonly<Record<string, Part>> = {
  'a text with a file name': { head: named('size', '; filename="blob"'), body: 'full' },
  'a generated client: file name, JSON, quotes': {
    head: `${named('size', '; filename="blob"')}\r\nContent-Type: application/json`,
    body: '"full"',
  },
  'JSON with quotes': { head: `${named('size')}\r\nContent-Type: application/json`, body: '"full"' },
  'quotes without a type': { head: named('size'), body: '"full"' },
  'declared as JSON, written as text': {
    head: `${named('size')}\r\nContent-Type: application/json`,
    body: 'full',
  },
  'a list of one': { head: named('size[]'), body: 'full' },
  octets: {
    head: `${named('size', '; filename="size.txt"')}\r\nContent-Type: application/octet-stream`,
    body: 'full\r\n',
  },
};

for (const [what, part] of Object.entries(optionParts)) {
  test(`an option as a part: ${what}`, async (t) => {
    const service = await startService(t);
    const answer = await send(service, [file('image_file', await photo()), part]);
    t.is(answer.status, 200);
    t.is(answer.headers.get('x-width'), fullWidth);
    t.is(answer.headers.get('x-credits-charged'), '1');
    t.is(ignored(answer), null);
  });
}

test('an option with a file name and a wrong value is refused like any other', async (t) => {
  const service = await startService(t);
  const size = { head: named('size', '; filename="blob"'), body: 'fulll' };
  const answer = await send(service, [file('image_file', await photo()), size]);
  t.is((await errorOf(t, answer)).code, 'invalid_size');
});

test('parts of JSON: booleans, numbers, null and one value per subject', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const json = (name: string, body: string): Part => ({
    head: `${named(name)}\r\nContent-Type: application/json`,
    body,
  });
  const image = file('image_file', await scene({ width: 300, height: 200, format: 'png' }));
  const cropped = await send(service, [
    image,
    json('crop', 'true'),
    json('crop_margin', '10'),
    json('size', 'null'),
  ]);
  t.is(cropped.status, 200);
  t.is(cropped.headers.get('x-foreground-left'), '10');
  t.is(cropped.headers.get('x-foreground-top'), '10');
  const bad = await send(service, [image, json('shadow_type', '{"person":"dorp"}')]);
  t.is((await errorOf(t, bad)).code, 'invalid_shadow_type');
});

test('base64 as a part with a file name is the image', async (t) => {
  const service = await startService(t);
  const text = (await photo()).toString('base64');
  const answer = await send(service, [{ head: named('image_file_b64', '; filename="blob"'), body: text }]);
  t.is(answer.status, 200);
  t.is(answer.headers.get('x-width'), previewWidth);
});

const postTo = (service: Service, path: string, body: FormData | string, type?: string) =>
  fetch(`${service.url}${path}`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key, ...(type && { 'Content-Type': type }) },
    body,
  });

test('options in the query count where the body has none', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const image = await photo();
  const path = '/v1.0/removebg?size=full&format=jpg&bg_color=%23fff';
  const answer = await postTo(service, path, form({ image_file: image }));
  t.is(answer.status, 200);
  t.is(answer.headers.get('x-width'), fullWidth);
  t.is(answer.headers.get('content-type'), 'image/jpeg');
  t.is(ignored(answer), null);
  const both = await postTo(service, path, form({ image_file: image, size: 'preview', format: 'png' }));
  t.is(both.headers.get('x-width'), previewWidth);
  t.is(both.headers.get('content-type'), 'image/png');
  const wrong = await postTo(service, '/v1.0/removebg?size=huge', form({ image_file: image }));
  t.is((await errorOf(t, wrong)).code, 'invalid_size');
  const two = await postTo(
    service,
    '/v1.0/removebg?image_url=http%3A%2F%2Fa.public.test%2Fb.jpg',
    form({ image_file: image }),
  );
  t.is((await errorOf(t, two)).code, 'multiple_sources');
});

test('a key in the query is not read, and named as ignored', async (t) => {
  const service = await startService(t);
  const body = form({ image_file: await photo() });
  const answer = await postTo(service, `/v1.0/removebg?api_key=${service.key}`, body);
  t.is(answer.status, 200);
  t.is(ignored(answer), 'api_key');
  const headers: Record<string, string> = {};
  const without = await fetch(`${service.url}/v1.0/removebg?api_key=${service.key}`, {
    method: 'POST',
    headers,
    body: form({ image_file: await photo() }),
  });
  t.is(without.status, 403);
});

test('an option in the query beside one value per subject in the body: the body counts', async (t) => {
  const service = await startService(t);
  const body = form({ image_file: await photo(), 'shadow_type[person]': 'none' });
  const answer = await postTo(service, '/v1.0/removebg?shadow_type=wrong', body);
  t.is(answer.status, 200);
});

test('image_file[], and the same file twice: the first counts', async (t) => {
  const service = await startService(t);
  const image = await photo();
  for (const parts of [
    [file('image_file[]', image)],
    [file('image_file[0]', image)],
    [file('image_file', image), file('image_file', image)],
    [file('image_file', image), file('image_file[]', image)],
    [file('image_file', Buffer.alloc(0)), file('image_file', image)],
    [file('image_file', image), file('image_file', Buffer.alloc(0))],
  ]) {
    const answer = await send(service, parts);
    t.is(answer.status, 200);
    t.is(answer.headers.get('x-width'), previewWidth);
    t.is(ignored(answer), null);
  }
});

test('two different files under one name are refused with the name', async (t) => {
  const service = await startService(t);
  const image = await photo();
  const other = await scene({ width: 500, height: 300 });
  for (const name of ['image_file', 'bg_image_file', 'mask_file'])
    for (const second of [other, image.subarray(0, -1), Buffer.concat([image, Buffer.from('x')])]) {
      const answer = await send(service, [file(name, image), file(`${name}[]`, second)]);
      t.is(answer.status, 400);
      const { code, detail = '' } = await errorOf(t, answer);
      t.is(code, 'malformed_request');
      t.true(detail.includes(name), detail);
    }
  t.deepEqual(await service.balance(), { credits: 100, freeCalls: 50 });
});

const json = { 'Content-Type': 'application/json' };
const inJson = async (service: Service, options: object): Promise<Response> => {
  const image = await scene({ width: 300, height: 200, format: 'png' });
  const body = { image_file_b64: image.toString('base64'), ...options };
  return service.post(JSON.stringify(body), json);
};

test('numbers in JSON: pixels for crop_margin, percent for scale and position', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const same = async (options: object, written: object) => {
    const [first, second] = [await inJson(service, options), await inJson(service, written)];
    t.is(first.status, 200, JSON.stringify(options));
    for (const name of ['x-width', 'x-height', 'x-foreground-left', 'x-foreground-top', 'x-foreground-width'])
      t.is(first.headers.get(name), second.headers.get(name), `${JSON.stringify(options)}: ${name}`);
    return first;
  };
  const margin = await same({ crop: true, crop_margin: 30 }, { crop: true, crop_margin: '30px' });
  t.is(margin.headers.get('x-foreground-left'), '30');
  await same({ crop: true, crop_margin: [10, 20] }, { crop: true, crop_margin: '10px 20px' });
  await same({ crop: true, crop_margin: ['10%', 20] }, { crop: true, crop_margin: '10% 20px' });
  await same({ crop: 1, crop_margin: 0 }, { crop: true });
  await same({ scale: 50, position: 20 }, { scale: '50%', position: '20%' });
  await same({ scale: 50, position: [0, 100] }, { scale: '50%', position: '0% 100%' });
});

for (const [options, code, received] of [
  [{ scale: 0.8 }, 'invalid_scale', '0.8%'],
  [{ crop_margin: -5 }, 'invalid_crop_margin', '-5px'],
  [{ crop_margin: true }, 'invalid_crop_margin', 'true'],
  [{ roi: [10, 20, 290, 180] }, 'invalid_roi', '10 20 290 180'],
  [{ position: 101 }, 'invalid_position', '101%'],
  [{ size: 4 }, 'invalid_size', '4'],
  [{ size: [['full']] }, 'invalid_size', '["full"]'],
  [{ size: { name: 'full' } }, 'invalid_size', '{"name":"full"}'],
] as const) {
  test(`JSON that is no value of its option: ${JSON.stringify(options)}`, async (t) => {
    const service = await startService(t);
    const error = await errorOf(t, await inJson(service, options));
    t.is(error.code, code);
    t.regex(error.detail ?? '', /^Expected /);
    t.true(error.detail?.includes(`received "${received}"`), error.detail);
  });
}

test('JSON without a type, as text, or as the form that curl declares, is read', async (t) => {
  const service = await startService(t);
  const text = JSON.stringify({ image_file_b64: (await photo()).toString('base64'), size: 'full' });
  const { port } = service.address;
  for (const type of [
    undefined,
    'text/plain',
    'text/plain;charset=UTF-8',
    'application/x-www-form-urlencoded',
  ]) {
    const answer = await new Promise<{ status: number | undefined; width: unknown }>((resolve, reject) => {
      const headers = { 'X-Api-Key': service.key, ...(type && { 'Content-Type': type }) };
      const req = request({ port, path: '/v1.0/removebg', method: 'POST', headers }, (res) => {
        res.resume();
        resolve({ status: res.statusCode, width: res.headers['x-width'] });
      });
      req.on('error', reject);
      req.end(`\n ${text}`);
    });
    t.deepEqual(answer, { status: 200, width: fullWidth }, type);
  }
});

test('any other body without a type is 415, with the types that are read', async (t) => {
  const service = await startService(t);
  for (const body of ['abc', '["a"]', 'size=full']) {
    const answer = await rawRequest(service.address.port, (socket) => {
      socket.write(
        `POST /v1.0/removebg HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${service.key}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
    });
    t.is(answer.status, 415, body);
    for (const type of ['multipart/form-data', 'application/x-www-form-urlencoded', 'application/json'])
      t.true(answer.body.includes(type), answer.body);
  }
});

/** Base64 as `curl -d` sends it: plus signs unescaped. */
for (const prefix of ['', 'data:image/png;base64,'])
  test(`urlencoded base64 whose plus signs became spaces is mended: ${prefix || 'plain'}`, async (t) => {
    const service = await startService(t);
    const image = await scene({ width: 300, height: 200, format: 'png' });
    const text = image.toString('base64');
    t.true(text.includes('+'));
    for (const sent of [text, text.replaceAll('+', '%20'), ` ${text}`, text.replace(/.{76}/g, '$&%0D%0A')]) {
      const answer = await service.post(`size=full&image_file_b64=${prefix}${sent}&format=png`, {
        'Content-Type': 'application/x-www-form-urlencoded',
      });
      t.is(answer.status, 200);
      t.is(answer.headers.get('x-width'), '300');
      t.is(answer.headers.get('content-type'), 'image/png');
    }
  });

test('in urlencoded base64 that is damaged, the plus signs count to the position', async (t) => {
  const service = await startService(t);
  const answer = await service.post('image_file_b64=AB+/!&size=full', {
    'Content-Type': 'application/x-www-form-urlencoded',
  });
  const error = await errorOf(t, answer);
  t.is(error.code, 'failed_to_read_image');
  t.is(error.detail, 'The text is not base64: it contains "!" at position 5.');
});

test('repeated and trailing slashes lead to the route', async (t) => {
  const service = await startService(t);
  for (const path of ['//v1.0/removebg', '/v1.0//removebg', '/v1.0/removebg/', '///v1.0//cutout?size=full']) {
    const answer = await postTo(service, path, form({ image_file: await photo() }));
    t.is(answer.status, 200, path);
  }
  const account = await fetch(`${service.url}//v1.0/account`, { headers: { 'X-Api-Key': service.key } });
  t.is(account.status, 200);
  t.is((await fetch(`${service.url}//health/live`)).status, 404);
});

test('unknown fields are named in the answer and in the log, escaped and shortened', async (t) => {
  const service = await startService(t);
  const long = 'x'.repeat(150);
  const answer = await send(service, [
    file('image_file', await photo()),
    { head: named('api_key'), body: 'secret' },
    file('thumbnail', Buffer.from('abc')),
    { head: named('crop margin'), body: '1' },
    { head: named(long), body: '1' },
    { head: named('größe'), body: '1' },
    { head: named('size[a]'), body: 'full' },
  ]);
  t.is(answer.status, 200);
  const names = ['api_key', 'crop%20margin', 'x'.repeat(64), 'gr%C3%B6%C3%9Fe', 'size%5Ba%5D', 'thumbnail'];
  t.deepEqual(ignored(answer)?.split(', ').sort(), [...names].sort());
  await answer.arrayBuffer();
  const logged = () => service.lines().find((line) => line['ignored'] !== undefined)?.['ignored'];
  await eventually(() => logged() !== undefined);
  t.is(logged(), ignored(answer));
  t.false(service.text().includes('secret'));
});

test('they are named on errors too, and in JSON; file fields that JSON cannot carry are among them', async (t) => {
  const service = await startService(t);
  const answer = await service.post(JSON.stringify({ image_file: 'abc', Size: 'full', __proto__x: 1 }), json);
  t.is(answer.status, 400);
  t.is(ignored(answer), 'image_file, Size, __proto__x');
  t.is((await errorOf(t, answer)).code, 'missing_source');
});

test('a thousand unknown fields make no long header', async (t) => {
  const service = await startService(t);
  const fields = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`f${i}`, 'x']));
  const answer = await service.post(form({ ...fields, image_file: await photo() }));
  t.is(answer.status, 200);
  t.true((ignored(answer)?.length ?? 0) < 2000);
  t.regex(ignored(answer) ?? '', /and 880 more$/);
});

test('a request without anything to ignore has no such header', async (t) => {
  const service = await startService(t);
  const answer = await service.post(form({ image_file: await photo(), size: 'auto', crop: '' }));
  t.is(ignored(answer), null);
});

test('improve reads its fields in the same way', async (t) => {
  const service = await startService(t);
  const body = form({ image_file: await photo(), size: 'full' });
  const answer = await postTo(service, '//v1.0/improve?tag=hair', body);
  t.is(answer.status, 200);
  t.is(ignored(answer), 'size');
  t.deepEqual(
    (await service.improve.list()).map(({ tag }) => tag),
    ['hair'],
  );
});

test('the bytes of .NET: quoted boundary, names without quotes, filename*, type before disposition', async (t) => {
  const service = await startService(t);
  const body = Buffer.concat([
    Buffer.from(
      '--0d2a\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=size\r\n\r\nfull\r\n' +
        "--0d2a\r\nContent-Type: image/png\r\nContent-Disposition: form-data; name=image_file; filename=a.png; filename*=utf-8''a.png\r\n\r\n",
    ),
    await photo(),
    Buffer.from('\r\n--0d2a--\r\n'),
  ]);
  const answer = await service.post(Uint8Array.from(body), {
    'Content-Type': 'multipart/form-data; boundary="0d2a"',
  });
  t.is(answer.status, 200);
  t.is(answer.headers.get('x-width'), fullWidth);
});

test('content credentials of an upload are in no result', async (t) => {
  const service = await startService(t, { engine: t.context.engine });
  const jpeg = await scene({ width: 300, height: 200 });
  const segment = Buffer.concat([Buffer.from('JP\0\x01\0\0\0\x01jumbc2pa'), Buffer.alloc(60_000, 1)]);
  let signed: Buffer = jpeg;
  for (let i = 0; i < 12; i++) signed = insertJpegSegment(signed, 0xeb, segment);
  for (const format of ['png', 'jpg', 'webp', 'zip']) {
    const answer = await service.post(form({ image_file: signed, format }));
    t.is(answer.status, 200, format);
    const bytes = Buffer.from(await answer.arrayBuffer()).toString('latin1');
    t.notRegex(bytes, /c2pa|jumb|caBX/, format);
  }
});
