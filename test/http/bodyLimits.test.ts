import test from 'ava';
import { headerValue } from '../../src/http/body/headerValue.ts';
import { scene } from '../fixtures/images.ts';
import { rawRequest } from '../fixtures/rawHttp.ts';
import { errorOf, eventually, form, type Service, startService } from '../fixtures/service.ts';

const json = { 'Content-Type': 'application/json' };
const urlencoded = { 'Content-Type': 'application/x-www-form-urlencoded' };
const multipart = { 'Content-Type': 'multipart/form-data; boundary=b' };

async function malformed(
  t: Parameters<typeof errorOf>[0],
  service: Service,
  body: string,
  headers: Record<string, string>,
  detail: RegExp,
) {
  const answer = await service.post(body, headers);
  t.is(answer.status, 400);
  const error = await errorOf(t, answer);
  t.is(error.code, 'malformed_request');
  t.regex(error.detail, detail);
}

test('a body with a Content-Encoding is 415, whatever its type; `identity` counts as none', async (t) => {
  const service = await startService(t);
  for (const type of [json, urlencoded, multipart])
    for (const encoding of ['gzip', 'deflate', 'br', 'GZIP', 'gzip, identity', 'x']) {
      const answer = await service.post('{}', { ...type, 'Content-Encoding': encoding });
      t.is(answer.status, 415, encoding);
      const error = await errorOf(t, answer);
      t.is(error.code, 'unsupported_content_type');
      t.regex(error.detail, /Content-Encoding/);
    }
  const text = JSON.stringify({ image_file_b64: (await scene()).toString('base64') });
  t.is((await service.post(text, { ...json, 'Content-Encoding': 'identity' })).status, 200);
});

test('the console accepts 8 KB of JSON, and limits attempts before the body', async (t) => {
  const service = await startService(t, { attempts: 2 });
  const post = (body: string, headers: Record<string, string>) =>
    fetch(`${service.url}/console/api/link`, { method: 'POST', headers, body });
  for (const headers of [urlencoded, multipart]) t.is((await post('token=a', headers)).status, 415);
  const large = await post(JSON.stringify({ token: 'a'.repeat(9000) }), json);
  t.is(large.status, 400);
  t.is((await errorOfConsole(large)).code, 'file_too_large');
  for (let i = 0; i < 2; i++) t.is((await post('{"token":"guess"}', json)).status, 401);
  // Nothing of this body is ever sent.
  const braked = await rawRequest(service.address.port, (socket) => {
    socket.write(
      'POST /console/api/link HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n',
    );
  });
  t.is(braked.status, 429);
  await eventually(() => service.memory.stats.held === 0);
});

const errorOfConsole = async (answer: Response) =>
  ((await answer.json()) as { errors: [{ code: string }] }).errors[0];

test('JSON is bounded in depth and values before it is parsed', async (t) => {
  const service = await startService(t);
  await malformed(t, service, '{"a":{"b":{"c":{}}}}', json, /deeper than 2/);
  await malformed(t, service, '{"a":{"b":{"c":1}}}', json, /deeper than 2/);
  await malformed(t, service, '{"a":{"b":[{"c":1}]}}', json, /deeper than 2/);
  await malformed(t, service, '['.repeat(100_000), json, /deeper than 2/);
  await malformed(t, service, `{"a":[${'1,'.repeat(1000)}1]}`, json, /more than 1000 values/);
  await malformed(t, service, `{${'"a":1,'.repeat(1000)}"b":1}`, json, /more than 1000 values/);
  const image = (await scene()).toString('base64');
  const fields = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`f${i}`, '[[[{{{,,,"\\']));
  const legal = {
    image_file_b64: image,
    ...fields,
    shadow_type: { person: ['none'] },
    size: ['x', 'auto'],
  };
  t.is((await service.post(JSON.stringify(legal), json)).status, 200);
});

test('a form has at most a thousand pairs; plus signs, brackets and escapes are decoded', async (t) => {
  const service = await startService(t);
  await malformed(t, service, 'a=b&'.repeat(1001), urlencoded, /more than 1000 fields/);
  const image = encodeURIComponent((await scene()).toString('base64'));
  const sized = (more: string) => service.post(`image_file_b64=${image}&${more}`, urlencoded);
  t.is((await sized('size=full&roi=0%25+0%25%20100%25+100%')).headers.get('x-credits-charged'), '1');
  t.is((await sized('size=%66ull')).headers.get('x-credits-charged'), '1');
  t.is((await sized('%73ize=full')).headers.get('x-credits-charged'), '1');
  for (const name of ['shadow_type[person]', 'shadow_type%5Bperson%5D', 'shadow_type%5bperson%5d'])
    t.is((await errorOf(t, await sized(`${name}=bad+one`))).code, 'invalid_shadow_type', name);
  t.regex((await errorOf(t, await sized('size=%E2%82%AC+%5B%zz%'))).detail, /"€ \[%zz%"/);
});

const part = (head: string, content = 'x') => `--b\r\n${head}\r\n\r\n${content}\r\n`;
const disposition = 'Content-Disposition: form-data; name=';

test('the headers of a part are bounded in bytes and number, its name in length', async (t) => {
  const service = await startService(t);
  const headers = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: a\r\n`).join('');
  const image = part(`${headers(31)}${disposition}"image_file_b64"`, (await scene()).toString('base64'));
  t.is((await service.post(`${image}--b--`, multipart)).status, 200);
  const refused: readonly (readonly [string, RegExp])[] = [
    [`${headers(32)}${disposition}"a"`, /more than 32 headers/],
    [`${headers(5000)}${disposition}"a"`, /more than 32 headers/],
    [`${disposition}"a"\r\nX-Long: ${'a'.repeat(9000)}`, /more than 8 KB/],
    [`${disposition}"a"\r\nX-Long: ${'a'.repeat(90_000)}`, /more than 8 KB/],
    [`X-Long: ${'a'.repeat(90_000)}\r\n${disposition}"a"`, /more than 8 KB/],
    [`${disposition}"${'a'.repeat(201)}"`, /more than 200 characters/],
    ['no header at all', /no headers/],
  ];
  for (const [head, detail] of refused) await malformed(t, service, `${part(head)}--b--`, multipart, detail);
  const boundary = 'b'.repeat(71);
  const type = { 'Content-Type': `multipart/form-data; boundary=${boundary}` };
  await malformed(t, service, `--${boundary}--`, type, /boundary of the form has more than 70/);
});

test('a form has at most a thousand and a few parts, including those that carry nothing', async (t) => {
  const service = await startService(t);
  const nothing = [
    '--b\r\n',
    '--b\r\nX: y\r\n',
    '--b\r\nX: y\r\n\r\nz\r\n',
    '--b\r\nContent-Disposition: form-data; name="__proto__"\r\n\r\nz\r\n',
  ];
  for (const part of nothing)
    await malformed(t, service, `${part.repeat(1017)}--b--\r\n`, multipart, /more than 1016 parts/);
});

test('parts in base64 are decoded; of a repeated file the first that is not empty counts', async (t) => {
  const service = await startService(t);
  const image = (await scene()).toString('base64');
  const coded = part(`${disposition}"image_file"\r\nContent-Transfer-Encoding: base64`, image);
  t.is((await service.post(`${coded}--b--\r\n`, multipart)).status, 200);
  const twice = new FormData();
  twice.append('image_file', new Blob([]));
  t.is((await errorOf(t, await service.post(twice))).code, 'missing_source');
  twice.append('image_file', new Blob([new Uint8Array(await scene())]));
  t.is((await service.post(twice)).status, 200);
  twice.append('image_file', new Blob([]));
  t.is((await service.post(twice)).status, 200);
  twice.append('image_file', new Blob(['another']));
  t.is((await errorOf(t, await service.post(twice))).code, 'malformed_request');
});

test('a form is the same in pieces of any size, with text before and after it', async (t) => {
  const service = await startService(t);
  const image = await scene({ width: 40, height: 30, format: 'png' });
  const body = Buffer.concat([
    Buffer.from(
      `preamble\r\n${part(`${disposition}"size"`, 'full')}--b\r\n${disposition}"image_file"; filename="a\\b.png"\r\n\r\n`,
    ),
    image,
    Buffer.from('\r\n--b--\r\nepilogue'),
  ]);
  for (const size of [1, 2, 3, 7, 64, body.length]) {
    const answer = await rawRequest(service.address.port, (socket) => {
      socket.write(
        `POST /v1.0/removebg HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${service.key}\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
      );
      const chunks: Buffer[] = [];
      for (let at = 0; at < body.length; at += size) {
        const piece = body.subarray(at, at + size);
        chunks.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
      }
      socket.write(Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]));
    });
    t.is(answer.status, 200, `pieces of ${size}`);
    t.is(answer.headers['x-credits-charged'], '1');
  }
});

test('texts of a form are counted with the memory they take, and released', async (t) => {
  const service = await startService(t, { memory: { room: 200e6, largestWork: 100e6 } });
  // 25 MB of text: five times its bytes exceeds the 100 MB that bodies may take.
  const data = new FormData();
  data.append('image_file_b64', 'A'.repeat(25e6));
  const answer = await service.post(data);
  t.is(answer.status, 503);
  t.regex((await errorOf(t, answer)).detail, /memory/);
  await eventually(() => service.memory.stats.held === 0);
  t.is((await service.post(form({ image_file: await scene() }))).status, 200);
});

test('a body on a route that takes none ends its connection, after the answer', async (t) => {
  const service = await startService(t);
  const piece = `10000\r\n${'A'.repeat(0x10000)}\r\n`;
  let closed = false;
  const answer = await rawRequest(service.address.port, async (socket) => {
    socket.on('close', () => {
      closed = true;
    });
    socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
    const end = performance.now() + 60_000;
    while (!closed && performance.now() < end) {
      if (!socket.write(piece)) await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
  t.is(answer.status, 200);
  t.true(closed);
});

test('parameters of a header are parsed as clients write them', (t) => {
  const read = (header: string) => Object.fromEntries(headerValue(header).parameters);
  t.is(headerValue(' Form-Data ; a=b').value, 'Form-Data');
  t.deepEqual(read('form-data; name="a"; filename="b.jpg"'), { name: 'a', filename: 'b.jpg' });
  t.deepEqual(read('form-data;name=a;filename=my photo.jpg'), { name: 'a', filename: 'my photo.jpg' });
  t.deepEqual(read('form-data; NAME = "a;b\\"c"; name=d;'), { name: 'a;b"c' });
  t.deepEqual(read('form-data; filename="C:\\dir\\a.jpg"; name=x'), {
    filename: 'C:\\dir\\a.jpg',
    name: 'x',
  });
  t.deepEqual(read('form-data; name; filename=""; =x; name="a'), { filename: '', '': 'x', name: 'a' });
  t.deepEqual(read(`form-data; name="${Buffer.from('ä€').toString('latin1')}"`), { name: 'ä€' });
  t.deepEqual(read('form-data'), {});
});
