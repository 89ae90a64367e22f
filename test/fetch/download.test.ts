import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { isPublicAddress } from '../../src/fetch/address.ts';
import {
  createDownload,
  DownloadError,
  type DownloadOptions,
  downloadRules,
} from '../../src/fetch/download.ts';

const never = new AbortController().signal;

async function serve(
  t: ExecutionContext,
  listener: RequestListener,
): Promise<{ port: number; server: Server }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, server };
}

/** The real rules, but loopback counts as public and `*.test` names live there. */
const loopback = (more: Partial<DownloadOptions> = {}): DownloadOptions => ({
  ...downloadRules,
  resolve: async () => ['127.0.0.1'],
  isAllowedAddress: (address) => address === '127.0.0.1' || isPublicAddress(address),
  ...more,
});

const failsWith = async (
  t: ExecutionContext,
  download: Promise<unknown>,
  kind: DownloadError['kind'],
  reason: RegExp,
) => {
  const error = await t.throwsAsync(download, { instanceOf: DownloadError });
  t.is(error.kind, kind);
  t.regex(error.reason, reason);
};

test('gives the bytes, and sends nothing of the caller', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i & 255));
  let seen: unknown;
  const { port } = await serve(t, (req, res) => {
    seen = req.headers;
    res.setHeader('Set-Cookie', 'a=1');
    res.end(bytes);
  });
  const got = await createDownload(loopback())(`http://pictures.test:${port}/a.jpg`, never);
  t.true(bytes.equals(got));
  t.deepEqual(Object.keys(seen as object).sort(), [
    'accept',
    'accept-encoding',
    'connection',
    'host',
    'user-agent',
  ]);
  t.is((seen as { host: string }).host, `pictures.test:${port}`);
});

for (const url of [
  'not a url',
  '/relative.jpg',
  'ftp://example.com/a.jpg',
  'file:///etc/passwd',
  'data:image/png;base64,AAAA',
  'http://user@example.com/',
  'https://user:secret@example.com/',
  'http://',
  'http://exa mple.com/',
]) {
  test(`is not a URL to fetch: ${url}`, (t) =>
    failsWith(t, createDownload(loopback())(url, never), 'url', /\.$/));
}

for (const host of [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '127.0.0.1.',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::]',
  '0.0.0.0',
  '169.254.169.254',
  '10.0.0.1',
]) {
  test(`numeric host ${host} is refused before anything is sent`, async (t) => {
    let hits = 0;
    const { port } = await serve(t, (_req, res) => {
      hits += 1;
      res.end('inside');
    });
    await failsWith(
      t,
      createDownload(downloadRules)(`http://${host}:${port}/`, never),
      'failed',
      /^The host has no public address\.$/,
    );
    t.is(hits, 0);
  });
}

test('a name with one address inside is refused, whatever the others are', async (t) => {
  let connections = 0;
  const { port, server } = await serve(t, (_req, res) => res.end('inside'));
  server.on('connection', () => {
    connections += 1;
  });
  for (const addresses of [['127.0.0.1'], ['1.1.1.1', '127.0.0.1'], ['::ffff:127.0.0.1'], []]) {
    const download = createDownload({ ...downloadRules, resolve: async () => addresses });
    await failsWith(t, download(`http://rebind.test:${port}/`, never), 'failed', /no public address/);
  }
  t.is(connections, 0);
});

test('a name that does not resolve reads like one that is refused', (t) => {
  const resolve = () => Promise.reject(Object.assign(new Error('queryA ENOTFOUND x'), { code: 'ENOTFOUND' }));
  return failsWith(
    t,
    createDownload({ ...downloadRules, resolve })('http://nowhere.test/', never),
    'failed',
    /^The host has no public address\.$/,
  );
});

test('the address that was checked is the one connected to: one look-up a hop', async (t) => {
  const { port } = await serve(t, (_req, res) => res.end('ok'));
  const answers = [['127.0.0.1'], ['10.0.0.1']];
  let asked = 0;
  const download = createDownload(loopback({ resolve: async () => answers[asked++] ?? [] }));
  t.is((await download(`http://flip.test:${port}/`, never)).toString(), 'ok');
  t.is(asked, 1);
});

test('follows 5 redirects, relative ones too, and not a sixth', async (t) => {
  const { port } = await serve(t, (req, res) => {
    const left = Number(req.url?.slice(1));
    if (left > 0) res.writeHead(302, { Location: `/${left - 1}` }).end('moved');
    else res.end('arrived');
  });
  const download = createDownload(loopback());
  t.is((await download(`http://hops.test:${port}/5`, never)).toString(), 'arrived');
  await failsWith(t, download(`http://hops.test:${port}/6`, never), 'failed', /More than 5 redirects/);
});

test('every hop is checked again', async (t) => {
  let inside = 0;
  const hidden = await serve(t, (_req, res) => {
    inside += 1;
    res.end('inside');
  });
  const targets = [
    `http://private.test:${hidden.port}/`,
    `http://127.0.0.2:${hidden.port}/`,
    `http://[::1]:${hidden.port}/`,
    `http://user:pw@outside.test:${hidden.port}/`,
    'file:///etc/passwd',
    'http://',
  ];
  for (const target of targets) {
    const { port } = await serve(t, (_req, res) => res.writeHead(301, { Location: target }).end());
    const download = createDownload(
      loopback({ resolve: async (name) => [name === 'private.test' ? '10.0.0.1' : '127.0.0.1'] }),
    );
    const error = await t.throwsAsync(download(`http://outside.test:${port}/`, never), {
      instanceOf: DownloadError,
    });
    t.is(error.kind, 'failed', target);
    t.false(/127|private|passwd|::1|10\./.test(error.reason), error.reason);
  }
  t.is(inside, 0);
});

test('any status but 200 fails and is named', async (t) => {
  const { port } = await serve(t, (req, res) => res.writeHead(Number(req.url?.slice(1))).end('no'));
  const download = createDownload(loopback());
  for (const status of [201, 204, 206, 304, 401, 404, 500])
    await failsWith(
      t,
      download(`http://a.test:${port}/${status}`, never),
      'failed',
      new RegExp(`^HTTP Status ${status}$`),
    );
});

test('too many bytes: refused by the announced length, and while they stream', async (t) => {
  const { port } = await serve(t, (req, res) => {
    if (req.url === '/announced') return void res.writeHead(200, { 'Content-Length': 1001 }).flushHeaders();
    const timer = setInterval(() => res.write(Buffer.alloc(100)), 1);
    res.on('close', () => clearInterval(timer));
  });
  const download = createDownload(loopback({ maxBytes: 1000 }));
  await failsWith(t, download(`http://a.test:${port}/announced`, never), 'large', /too large/);
  await failsWith(t, download(`http://a.test:${port}/endless`, never), 'large', /too large/);
});

test('exactly the limit is accepted', async (t) => {
  const { port } = await serve(t, (_req, res) => res.end(Buffer.alloc(1000)));
  t.is((await createDownload(loopback({ maxBytes: 1000 }))(`http://a.test:${port}/`, never)).length, 1000);
});

test('a host that never answers, one that stalls and one that drips are given up in time', async (t) => {
  const { port } = await serve(t, (req, res) => {
    if (req.url === '/silent') return;
    res.writeHead(200, { 'Content-Length': 100_000 });
    res.write('x');
    if (req.url === '/stalled') return;
    const timer = setInterval(() => res.write('x'), 20);
    res.on('close', () => clearInterval(timer));
  });
  const download = createDownload(loopback({ totalTimeoutMs: 300 }));
  for (const path of ['silent', 'stalled', 'dripping']) {
    const started = performance.now();
    await failsWith(t, download(`http://a.test:${port}/${path}`, never), 'failed', /did not answer in time/);
    t.true(performance.now() - started < 10_000);
  }
});

test('a broken answer fails in a plain sentence', async (t) => {
  const server = createTcpServer((socket) => socket.end('SSH-2.0-nothing\r\n'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  await failsWith(
    t,
    createDownload(loopback())(`http://a.test:${port}/`, never),
    'failed',
    /^The connection to the host failed\.$/,
  );
  await failsWith(t, createDownload(loopback())(`https://a.test:${port}/`, never), 'failed', /^The c.*\.$/);
});

test('nothing listens: a plain sentence without the address', async (t) => {
  const error = await t.throwsAsync(createDownload(loopback())('http://a.test:9/', never), {
    instanceOf: DownloadError,
  });
  t.is(error.reason, 'The connection to the host failed.');
});

test('aborting rejects with the reason and closes the connection', async (t) => {
  let closed = () => {};
  const gone = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const controller = new AbortController();
  const { port } = await serve(t, (_req, res) => {
    res.on('close', closed);
    controller.abort(new Error('client left'));
  });
  await t.throwsAsync(createDownload(loopback())(`http://a.test:${port}/`, controller.signal), {
    message: 'client left',
  });
  await gone;
});

test('hosts that the operator named are fetched from wherever they are', async (t) => {
  const { port } = await serve(t, (_req, res) => res.end('inside'));
  const url = `http://127.0.0.1:${port}/`;
  for (const host of ['127.0.0.1', `127.0.0.1:${port}`])
    t.is((await createDownload({ ...downloadRules, allowHosts: [host] })(url, never)).toString(), 'inside');
  const other = createDownload({ ...downloadRules, allowHosts: ['127.0.0.1:1', '127.0.0.2'] });
  await failsWith(t, other(url, never), 'failed', /no public address/);
  const byName = createDownload({ ...downloadRules, allowHosts: ['localhost'] });
  t.is((await byName(`http://localhost:${port}/`, never)).toString(), 'inside');
});
