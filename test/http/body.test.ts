import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { unless } from '../fixtures/leftOut.ts';
import { dial, rawRequest } from '../fixtures/rawHttp.ts';
import { type ErrorBody, errorOf, eventually, form, startService } from '../fixtures/service.ts';

const limit = 22 * 1024 * 1024;
const post = (key: string, more: string) =>
  `POST /v1.0/removebg HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${key}\r\n${more}\r\n`;
const part = (headers: string) => `--b\r\n${headers}\r\n\r\n`;

/** A multipart request of one hand-made part before a real image. */
function multipart(key: string, parts: readonly (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((one) => (typeof one === 'string' ? Buffer.from(one) : one)));
  const head = post(
    key,
    `Content-Type: multipart/form-data; boundary=b\r\nContent-Length: ${body.length}\r\nConnection: close\r\n`,
  );
  return Buffer.concat([Buffer.from(head), body]);
}

const code = (body: string) => (JSON.parse(body) as ErrorBody).errors[0]?.code;

test("a part's kind follows from its name: without type, without file name, with text types, with encodings", async (t) => {
  const service = await startService(t);
  const image = await scene();
  const disposition = 'Content-Disposition: form-data; name="image_file"';
  const heads = [
    `${disposition}; filename="a.jpg"`,
    `${disposition}; filename="blob"\r\nContent-Type: image/png`,
    disposition,
    `${disposition}\r\nContent-Type: image/jpeg`,
    `${disposition}; filename=""\r\nContent-Type: application/octet-stream`,
    `${disposition}; filename="a.jpg"\r\nContent-Length: ${image.length}\r\nContent-Transfer-Encoding: binary`,
    `${disposition}; filename="a.jpg"\r\nContent-Transfer-Encoding: 8bit`,
    `content-disposition: form-data; name=image_file; filename=a.jpg\r\ncontent-type: text/plain`,
  ];
  const size = part(
    'Content-Disposition: form-data; name="size"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit',
  );
  for (const head of heads) {
    const request = multipart(service.key, [part(head), image, `\r\n${size}full\r\n--b--\r\n`]);
    const answer = await rawRequest(service.address.port, (socket) => void socket.write(request));
    t.is(answer.status, 200, head);
    t.is(answer.headers['x-credits-charged'], '1', head);
  }
});

const broken = {
  'no boundary in the header': ['multipart/form-data', '--b\r\n\r\n'],
  'another boundary': [
    'multipart/form-data; boundary=c',
    '--b\r\nContent-Disposition: form-data; name="size"\r\n\r\nauto\r\n--b--',
  ],
  'cut off in a part': [
    'multipart/form-data; boundary=b',
    '--b\r\nContent-Disposition: form-data; name="image_file"; filename="a"\r\n\r\nabc',
  ],
  'cut off in a header': ['multipart/form-data; boundary=b', '--b\r\nContent-Dispo'],
  'headers that are none': ['multipart/form-data; boundary=b', '--b\r\n:\r\n\r\nx\r\n--b--'],
  'an unknown transfer encoding': [
    'multipart/form-data; boundary=b',
    '--b\r\nContent-Disposition: form-data; name="size"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nx\r\n--b--',
  ],
  'JSON that is none': ['application/json', '{"size":'],
  'JSON that is an array': ['application/json', '[1,2]'],
  'JSON that is a text': ['application/json', '"size"'],
  'JSON null': ['application/json', 'null'],
} as const;

for (const [what, [type, body]] of Object.entries(broken)) {
  test(`malformed: ${what}`, async (t) => {
    const service = await startService(t);
    const answer = await service.post(body, { 'Content-Type': type });
    t.is(answer.status, 400);
    const error = await errorOf(t, answer);
    t.like(error, { code: 'malformed_request', title: 'Malformed request' });
    if (what.startsWith('cut off')) t.regex(error.detail ?? '', /closing boundary/);
    t.is((await service.post(form({ image_file: await scene() }))).status, 200);
  });
}

test('too many parts are malformed', async (t) => {
  const service = await startService(t);
  const many = new FormData();
  for (let i = 0; i < 1001; i++) many.append(`f${i}`, 'x');
  t.is((await errorOf(t, await service.post(many))).code, 'malformed_request');
  const files = new FormData();
  for (let i = 0; i < 17; i++) files.append(`f${i}`, new Blob(['x']), 'x');
  t.is((await errorOf(t, await service.post(files))).code, 'malformed_request');
});

test('other content types, and a body without one, are 415', async (t) => {
  const service = await startService(t);
  for (const type of [
    'text/plain',
    'image/jpeg',
    'application/xml',
    'application/jsonx',
    'multipart/mixed; boundary=b',
    'x',
  ]) {
    const answer = await service.post('abc', { 'Content-Type': type });
    t.is(answer.status, 415, type);
    t.is((await errorOf(t, answer)).code, 'unsupported_content_type');
  }
  const answer = await rawRequest(service.address.port, (socket) => {
    socket.write(`${post(service.key, 'Content-Length: 3\r\nConnection: close\r\n')}abc`);
  });
  t.is(answer.status, 415);
});

test('a file of exactly 22 MB is accepted, one byte more is too large', async (t) => {
  const service = await startService(t);
  const image = await scene();
  const padded = Buffer.concat([image, Buffer.alloc(limit - image.length)]);
  t.is((await service.post(form({ image_file: padded }))).status, 200);
  const answer = await service.post(form({ image_file: Buffer.concat([padded, Buffer.alloc(1)]) }));
  t.is(answer.status, 400);
  t.deepEqual(await errorOf(t, answer), {
    title: 'File too large',
    code: 'file_too_large',
    detail: 'File exceeds limit of 22MB',
  });
});

test('a client that disconnects while its body is parsed leaves no memory counted', async (t) => {
  const service = await startService(t);
  const body = Buffer.from(JSON.stringify({ image_file_b64: 'A'.repeat(24e6) }));
  const head = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  // At different stages of the work that follows the last byte.
  for (const turns of [0, 4, 8, 12, 16, 24]) {
    const socket = await dial(service.address.port);
    socket.on('error', () => {});
    await new Promise<void>((resolve) => {
      socket.write(post(service.key, head));
      socket.write(body, () => resolve());
    });
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    await eventually(() => service.memory.stats.held === 0);
    // Work that continues on the body must not count it again.
    await new Promise((resolve) => setTimeout(resolve, 300));
    t.is(service.memory.stats.held, 0, `${turns} turns after the last byte`);
  }
  t.is((await service.post(form({ image_file: await scene() }))).status, 200);
});

const endless = (head: string) => `${head}Transfer-Encoding: chunked\r\n`;
const floods = {
  'a file': [
    'multipart/form-data; boundary=b',
    part('Content-Disposition: form-data; name="image_file"; filename="a"'),
  ],
  'a file nobody asked for': [
    'multipart/form-data; boundary=b',
    part('Content-Disposition: form-data; name="x"; filename="a"'),
  ],
  'a text field': ['multipart/form-data; boundary=b', part('Content-Disposition: form-data; name="x"')],
  JSON: ['application/json', '{"image_file_b64":"'],
  'a urlencoded form': ['application/x-www-form-urlencoded', 'image_file_b64='],
} as const;

for (const [what, [type, start]] of Object.entries(floods)) {
  test(`${what} without end: the client reads the error while it still sends`, async (t) => {
    const service = await startService(t);
    const chunk = Buffer.from(`10000\r\n${'A'.repeat(0x10000)}\r\n`);
    let open = true;
    const answer = await rawRequest(service.address.port, async (socket) => {
      socket.write(
        endless(post(service.key, `Content-Type: ${type}\r\n`).replace(/\r\n$/, '')).concat('\r\n'),
      );
      socket.write(`${start.length.toString(16)}\r\n${start}\r\n`);
      const closed = new Promise<void>((resolve) => {
        socket.on('close', () => {
          open = false;
          resolve();
        });
      });
      const end = performance.now() + 60_000;
      while (open && performance.now() < end) {
        if (!socket.write(chunk))
          await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))]);
      }
    });
    t.is(answer.status, 400);
    t.is(code(answer.body), 'file_too_large');
    t.is(answer.headers['connection'], 'close');
    t.false(open, 'the server ended it');
    t.is((await service.post(form({ image_file: await scene() }))).status, 200);
  });
}

test('fetch reads the error of a body over the limit', async (t) => {
  const service = await startService(t);
  const answer = await service.post(form({ image_file: Buffer.alloc(limit + 1024 * 1024) }));
  t.is((await errorOf(t, answer)).code, 'file_too_large');
});

const curl = ['/usr/bin/curl', '/bin/curl'].find((file) => existsSync(file));
unless(curl ? undefined : 'curl is not installed')(
  'curl reads errors that come before its upload is over',
  async (t) => {
    const service = await startService(t);
    const folder = mkdtempSync(path.join(tmpdir(), 'cutout-curl-'));
    const file = path.join(folder, 'large.jpg');
    writeFileSync(file, Buffer.alloc(limit + 8 * 1024 * 1024));
    const run = async (key: string) => {
      const { stdout } = await promisify(execFile)(curl ?? '', [
        '-sS',
        '-w',
        '\n%{http_code}',
        '-H',
        `X-Api-Key: ${key}`,
        '-F',
        `image_file=@${file}`,
        `${service.url}/v1.0/removebg`,
      ]);
      const [body = '', status] = stdout.split('\n');
      return [status, code(body)];
    };
    t.deepEqual(await run(service.key), ['400', 'file_too_large']);
    t.deepEqual(await run('wrong'), ['403', 'auth_failed']);
  },
);

test('Expect: 100-continue: the body is requested once the key is accepted, not before', async (t) => {
  const service = await startService(t);
  const image = await scene();
  const data = multipart(service.key, [
    part('Content-Disposition: form-data; name="image_file"; filename="a"'),
    image,
    '\r\n--b--\r\n',
  ]).toString('latin1');
  const split = data.indexOf('\r\n\r\n') + 4;
  const answer = await rawRequest(service.address.port, async (socket) => {
    socket.write(`${data.slice(0, split - 2)}Expect: 100-continue\r\n\r\n`, 'latin1');
    await new Promise<void>((resolve) =>
      socket.once('data', (chunk) => {
        t.is(chunk.toString('latin1'), 'HTTP/1.1 100 Continue\r\n\r\n');
        resolve();
      }),
    );
    socket.write(data.slice(split), 'latin1');
  });
  t.regex(answer.body, /^HTTP\/1\.1 200 OK\r\n/);
  const refused = await rawRequest(service.address.port, (socket) => {
    socket.write(
      post('wrong', 'Content-Type: application/json\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n'),
    );
  });
  t.is(refused.status, 403);
});

test('a client that disconnects during its upload is a 499 in the log, without other effects', async (t) => {
  const service = await startService(t);
  const socket = await dial(service.address.port);
  socket.write(
    post(service.key, 'Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n'),
  );
  socket.write(part('Content-Disposition: form-data; name="image_file"; filename="a"'));
  await eventually(() => service.memory.stats.held > 0);
  socket.destroy();
  await eventually(() => service.lines().length > 0);
  t.like(service.lines()[0], { status: 499, error: 'client_closed' });
  t.is(service.engine.started, 0);
});

test('an upload that exceeds the time limit is 504', async (t) => {
  const service = await startService(t, { timeout: 1 });
  const answer = await rawRequest(service.address.port, (socket) => {
    socket.write(post(service.key, 'Content-Type: application/json\r\nContent-Length: 1000\r\n'));
    socket.write('{"size":');
  });
  t.is(answer.status, 504);
  t.is(code(answer.body), 'timeout');
});

test('input that is not HTTP is answered in the envelope too', async (t) => {
  const service = await startService(t);
  for (const text of ['HELLO\r\n\r\n', `GET / HTTP/1.1\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`]) {
    const answer = await rawRequest(service.address.port, (socket) => void socket.write(text));
    t.is(answer.status, 400);
    t.is(code(answer.body), 'malformed_request');
    t.is(answer.headers['content-type'], 'application/json; charset=utf-8');
  }
});
