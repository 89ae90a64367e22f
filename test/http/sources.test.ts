import test, { type ExecutionContext } from 'ava';
import { imageHost } from '../fixtures/imageHost.ts';
import { scene } from '../fixtures/images.ts';
import { errorOf, form, startService } from '../fixtures/service.ts';

const json = { 'Content-Type': 'application/json' };
const urlencoded = { 'Content-Type': 'application/x-www-form-urlencoded' };

async function host(t: ExecutionContext, answer: Buffer | number): Promise<string> {
  const url = await imageHost(t, (_req, res) => {
    if (typeof answer === 'number') res.writeHead(answer).end();
    else res.end(answer);
  });
  return `${url}/photo.jpg?a=1&b=2`;
}

test('base64: in all three content types, in every valid form', async (t) => {
  const service = await startService(t);
  const image = await scene({ width: 120, height: 80 });
  const standard = image.toString('base64');
  const forms = [
    standard,
    standard.replace(/=+$/, ''),
    image.toString('base64url'),
    `data:image/png;base64,${standard}`,
    standard.replace(/(.{76})/g, '$1\r\n'),
    ` ${standard}\n`,
  ];
  for (const text of forms) {
    const answers = await Promise.all([
      service.post(JSON.stringify({ image_file_b64: text }), json),
      service.post(new URLSearchParams({ image_file_b64: text }), {}),
      service.post(form({ image_file_b64: text }), {}),
    ]);
    for (const answer of answers) {
      t.is(answer.status, 200, text.slice(0, 30));
      t.is(answer.headers.get('x-width'), '120');
      await answer.arrayBuffer();
    }
  }
});

for (const [text, detail] of [
  ['!!!!', 'The text is not base64: it contains "!" at position 1.'],
  ['AAAA*AAA', 'The text is not base64: it contains "*" at position 5.'],
  ['AA=AAAAA', 'The text is not base64: it contains "=" at position 3.'],
  ['AAAAA', 'The base64 text is incomplete: it ends after 5 characters, one more than whole bytes have.'],
  ['data:image/png;base64,', 'The base64 text is empty.'],
  ['==', 'The base64 text is empty.'],
] as const) {
  test(`base64: ${text} cannot be decoded`, async (t) => {
    const service = await startService(t);
    const answer = await service.post(JSON.stringify({ image_file_b64: text }), json);
    t.is(answer.status, 400);
    t.deepEqual(await errorOf(t, answer), {
      title: 'There was an error reading the image.',
      code: 'failed_to_read_image',
      detail,
    });
  });
}

test('base64 of more than 22 MB is too large', async (t) => {
  const service = await startService(t);
  const text = Buffer.alloc(22 * 1024 * 1024 + 1).toString('base64');
  const error = await errorOf(t, await service.post(JSON.stringify({ image_file_b64: text }), json));
  t.is(error.code, 'file_too_large');
});

test('an address is downloaded, in all three content types', async (t) => {
  const service = await startService(t);
  const url = await host(t, await scene({ width: 130, height: 90 }));
  for (const answer of [
    await service.post(JSON.stringify({ image_url: url }), json),
    await service.post(new URLSearchParams({ image_url: url }), {}),
    await service.post(form({ image_url: url }), {}),
  ]) {
    t.is(answer.status, 200);
    t.is(answer.headers.get('x-width'), '130');
    await answer.arrayBuffer();
  }
});

test('failed downloads report the given address and the reason', async (t) => {
  const service = await startService(t);
  const missing = await host(t, 404);
  t.deepEqual(await errorOf(t, await service.post(form({ image_url: missing }))), {
    title: `Failed to download image from given image_url: ${missing}`,
    code: 'failed_image_download',
    detail: 'HTTP Status 404',
  });
  const hidden = 'http://intranet.example/secret.png';
  const unreachable = await errorOf(t, await service.post(form({ image_url: hidden })));
  t.like(unreachable, {
    title: `Failed to download image from given image_url: ${hidden}`,
    code: 'failed_image_download',
  });
  t.regex(unreachable.detail, /^The host could not be reached or is not allowed: /);
  for (const bad of [
    'photo.jpg',
    'file:///etc/passwd',
    'ftp://a.public.test/',
    'http://u:p@a.public.test/',
  ]) {
    const answer = await service.post(form({ image_url: bad }));
    t.is(answer.status, 400);
    t.is((await errorOf(t, answer)).code, 'invalid_image_url', bad);
  }
});

test('a downloaded page is not an image', async (t) => {
  const service = await startService(t);
  const url = await host(t, Buffer.from('<!DOCTYPE html><html></html>'));
  t.is((await errorOf(t, await service.post(form({ image_url: url })))).code, 'invalid_file_type');
});

test('no source and more than one are refused', async (t) => {
  const service = await startService(t);
  for (const body of [form({ size: 'auto' }), new URLSearchParams({ size: 'auto' }), undefined]) {
    const answer = await service.post(body);
    t.is(answer.status, 400);
    t.deepEqual(await errorOf(t, answer), {
      title: 'No image given',
      code: 'missing_source',
      detail: 'Please provide the source image in the image_url, image_file or image_file_b64 parameter.',
    });
  }
  const answer = await service.post(form({ image_file: await scene(), image_url: 'http://a.public.test/' }));
  t.deepEqual(await errorOf(t, answer), {
    title:
      'Multiple image sources given: Please provide either the image_url, image_file or image_file_b64 parameter.',
    code: 'multiple_sources',
    detail: 'Received: image_file, image_url.',
  });
});

test('empty means absent: text, JSON null and a file part without bytes', async (t) => {
  const service = await startService(t);
  const image = (await scene()).toString('base64');
  const multipart = form({
    image_file: Buffer.alloc(0),
    image_file_b64: image,
    image_url: '',
    size: '',
    format: '',
  });
  t.is((await service.post(multipart)).status, 200);
  const body = { image_file_b64: image, image_url: null, size: '', channels: null, format: '  ' };
  t.is((await service.post(JSON.stringify(body), json)).status, 200);
  const demo = form({ image_file: Buffer.alloc(0) });
  t.is((await errorOf(t, await service.post(demo))).code, 'missing_source');
});

test('unknown fields are ignored, JSON scalars are read as text, the last of repeated values counts', async (t) => {
  const service = await startService(t);
  const image = await scene({ width: 200, height: 100 });
  const data = form({
    image_file: image,
    api_key: 'x',
    size: 'nonsense',
    'shadow[x]': '1',
    nothing: image,
  });
  data.append('size', ' FULL ');
  t.is((await service.post(data)).headers.get('x-credits-charged'), '1');

  const encoded = new URLSearchParams({ image_file_b64: image.toString('base64'), size: 'nonsense' });
  encoded.append('size', 'full');
  encoded.append('constructor', '1');
  t.is((await service.post(encoded, {})).headers.get('x-credits-charged'), '1');

  const body = {
    image_file_b64: image.toString('base64'),
    type_level: 2,
    size: ['bad', 'full'],
    other: { a: [1] },
  };
  const answer = await service.post(JSON.stringify(body), json);
  t.is(answer.headers.get('x-credits-charged'), '1');
});

test('file fields exist in multipart only', async (t) => {
  const service = await startService(t);
  const text = (await scene()).toString('base64');
  t.is(
    (await errorOf(t, await service.post(JSON.stringify({ image_file: text }), json))).code,
    'missing_source',
  );
  const encoded = `image_file=${encodeURIComponent(text)}`;
  t.is((await errorOf(t, await service.post(encoded, urlencoded))).code, 'missing_source');
});

test('names with a meaning in JavaScript have no effect', async (t) => {
  const service = await startService(t);
  const image = await scene();
  const names = ['__proto__', 'constructor', 'prototype', 'toString', '__proto__[size]', 'hasOwnProperty'];
  const data = form({ image_file: image });
  for (const name of names) data.append(name, 'full');
  data.append('__proto__', new Blob(['x']), 'x.png');
  const answer = await service.post(data);
  t.is(answer.status, 200);
  t.is(answer.headers.get('x-credits-charged'), '0');
  t.is(({} as { size?: string }).size, undefined);
  const body = `{"image_file_b64":"${image.toString('base64')}","constructor":{"prototype":"full"}}`;
  const second = await service.post(body, json);
  t.is(second.headers.get('x-credits-charged'), '0');
  const encoded = JSON.stringify(image.toString('base64'));
  for (const name of ['__proto__', '\\u005f_proto__', 'prototype', 'hasOwnProperty']) {
    const fields = [`"${name}":{"size":"full"}`, `"${name}":"full"`, `"x":{"${name}":"full"}`];
    for (const [i, field] of fields.entries()) {
      const poisoned = await service.post(`{${field},"image_file_b64":${encoded}}`, json);
      t.is(poisoned.status, 200, `${name} ${i}`);
      t.is(poisoned.headers.get('x-credits-charged'), '0');
    }
  }
  t.is(({} as { size?: string }).size, undefined);
});
