import type { RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { isPublicAddress } from '../../src/fetch/address.ts';
import {
  createDownloader,
  type DownloadOptions,
  downloadRules,
  type Room,
} from '../../src/fetch/download.ts';
import { DownloadError } from '../../src/fetch/error.ts';
import { createHostRule, portOf } from '../../src/fetch/hosts.ts';
import { listenHere } from '../fixtures/imageHost.ts';
import { eventually } from '../fixtures/service.ts';

const never = new AbortController().signal;

/** Ports of the hosts of this file. */
const ports: number[] = [];

/** A host that the rules treat as one on a usual port. */
async function serve(t: ExecutionContext, listener: RequestListener) {
  const server = await listenHere(t, listener);
  ports.push(server.port);
  return { port: server.port, server };
}

/** The real rules, except that loopback counts as public and `*.test` names resolve to it. */
const loopback = (more: Partial<DownloadOptions> = {}): DownloadOptions => ({
  ...downloadRules,
  ports,
  resolve: async () => ['127.0.0.1'],
  isAllowedAddress: (address) => address === '127.0.0.1' || isPublicAddress(address),
  ...more,
});

/** Opens and fetches; by default memory is unlimited. */
const createDownload = (options: DownloadOptions) => {
  const { check, download } = createDownloader(options);
  return async (url: string, signal: AbortSignal, room: Room = () => true) =>
    download(check(url), signal, room);
};

/** The public text for every address that was not, or must not be, fetched. */
const unreachable = /^The host could not be reached or is not allowed: only public hosts on port/;

/** The real rules for these ports. */
const rules: DownloadOptions = { ...downloadRules, ports };

const failsWith = async (
  t: ExecutionContext,
  download: Promise<unknown>,
  kind: DownloadError['kind'],
  reason: RegExp,
  fault?: DownloadError['fault'],
) => {
  const error = await t.throwsAsync(download, { instanceOf: DownloadError });
  t.is(error.kind, kind);
  t.regex(error.reason, reason);
  if (fault) t.is(error.fault, fault);
};

test('returns the bytes, and sends nothing of the caller', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i & 255));
  let seen: unknown;
  const { port } = await serve(t, (req, res) => {
    seen = req.headers;
    res.setHeader('Set-Cookie', 'a=1');
    res.end(bytes);
  });
  const got = await createDownload(loopback())(`http://images.test:${port}/a.jpg`, never);
  t.true(bytes.equals(got));
  t.deepEqual(Object.keys(seen as object).sort(), [
    'accept',
    'accept-encoding',
    'connection',
    'host',
    'user-agent',
  ]);
  t.is((seen as { host: string }).host, `images.test:${port}`);
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
  test(`is not a URL that can be fetched: ${url}`, (t) =>
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
      createDownload(rules)(`http://${host}:${port}/`, never),
      'failed',
      unreachable,
      'blocked',
    );
    t.is(hits, 0);
  });
}

test('a name with one internal address is refused, whatever its others are', async (t) => {
  let connections = 0;
  const { port, server } = await serve(t, (_req, res) => res.end('inside'));
  server.on('connection', () => {
    connections += 1;
  });
  for (const addresses of [['127.0.0.1'], ['1.1.1.1', '127.0.0.1'], ['::ffff:127.0.0.1'], []]) {
    const download = createDownload({ ...rules, resolve: async () => addresses });
    await failsWith(t, download(`http://rebind.test:${port}/`, never), 'failed', unreachable);
  }
  t.is(connections, 0);
});

test('a name that does not resolve has the same public text as a refused one', (t) => {
  const resolve = () => Promise.reject(Object.assign(new Error('queryA ENOTFOUND x'), { code: 'ENOTFOUND' }));
  return failsWith(
    t,
    createDownload({ ...downloadRules, resolve })('http://nowhere.test/', never),
    'failed',
    unreachable,
    'dns',
  );
});

test('the checked address is the one connected to: one look-up per hop', async (t) => {
  const { port } = await serve(t, (_req, res) => res.end('ok'));
  const answers = [['127.0.0.1'], ['10.0.0.1']];
  let asked = 0;
  const download = createDownload(loopback({ resolve: async () => answers[asked++] ?? [] }));
  t.is((await download(`http://flip.test:${port}/`, never)).toString(), 'ok');
  t.is(asked, 1);
});

test('follows 5 redirects, relative ones too, but not a sixth', async (t) => {
  const { port } = await serve(t, (req, res) => {
    const left = Number(req.url?.slice(1));
    if (left > 0) res.writeHead(302, { Location: `/${left - 1}` }).end('moved');
    else res.end('arrived');
  });
  const download = createDownload(loopback());
  t.is((await download(`http://hops.test:${port}/5`, never)).toString(), 'arrived');
  await failsWith(t, download(`http://hops.test:${port}/6`, never), 'failed', /More than 5 redirects/);
});

test('every redirect is checked again', async (t) => {
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
    t.false(/127\.|private|passwd|::1|10\.0/.test(error.reason), error.reason);
  }
  t.is(inside, 0);
});

test('any status but 200 fails and is reported', async (t) => {
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

test('too many bytes: refused by the announced length, and while they arrive', async (t) => {
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

test('hosts that never answer, stall or drip are abandoned in time', async (t) => {
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
    await failsWith(t, download(`http://a.test:${port}/${path}`, never), 'failed', unreachable, 'timeout');
    t.true(performance.now() - started < 10_000);
  }
});

test('answers without end that are no file are cut off as such, long before the time limit', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\n';
  const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`;
  const floods: Readonly<Record<string, readonly [string, string]>> = {
    '/hints': ['', 'HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n'],
    '/heads': [head, `X-A: ${'a'.repeat(60_000)}\r\n`],
    '/chunks': [chunked, '1\r\na\r\n'],
    '/extensions': [chunked, `1;${'a'.repeat(1_000_000)}\r\na\r\n`],
  };
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (request) => {
      const [start = '', again = ''] = floods[/^GET (\S+)/.exec(request.toString())?.[1] ?? ''] ?? [];
      const piece = again.repeat(Math.ceil(65_536 / again.length));
      socket.write(start);
      const more = () => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on('drain', more);
      more();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  ports.push(port);
  const download = createDownload(loopback({ totalTimeoutMs: 60_000, maxBytes: 4_000_000 }));
  for (const path of Object.keys(floods))
    await failsWith(t, download(`http://a.test:${port}${path}`, never), 'failed', unreachable, 'connection');
});

test('a few informational answers precede a file', async (t) => {
  const { port } = await serve(t, (_req, res) => {
    for (let i = 0; i < 5; i++) res.writeEarlyHints({ link: '</a>; rel=preload' });
    res.end('file');
  });
  t.is((await createDownload(loopback())(`http://a.test:${port}/`, never)).toString(), 'file');
});

test('a broken answer fails with a plain sentence', async (t) => {
  const server = createTcpServer((socket) => socket.end('SSH-2.0-nothing\r\n'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  ports.push(port);
  const download = createDownload(loopback());
  await failsWith(t, download(`http://a.test:${port}/`, never), 'failed', unreachable, 'connection');
  await failsWith(t, download(`https://a.test:${port}/`, never), 'failed', unreachable, 'tls');
});

/** A port without a listener. */
async function closedPort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('every connection error has exactly the same public text', async (t) => {
  const silent = await serve(t, () => {});
  const broken = createTcpServer((socket) => socket.end('SSH-2.0-nothing\r\n'));
  const reset = createTcpServer((socket) => socket.resetAndDestroy());
  for (const server of [broken, reset]) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => server.close());
  }
  const portOf = (server: typeof broken) => (server.address() as AddressInfo).port;
  const closed = await closedPort();
  const known = [silent.port, portOf(broken), portOf(reset), closed];
  const moved = await serve(t, (req, res) =>
    res.writeHead(302, { Location: decodeURIComponent(req.url?.slice(1) ?? '') }).end(),
  );
  const download = createDownload({
    ...loopback({ totalTimeoutMs: 400, ports: [...known, moved.port] }),
    resolve: async (name) => {
      if (name === 'inside.test') return ['10.0.0.1'];
      return name === 'nowhere.test' ? [] : ['127.0.0.1'];
    },
  });
  const wanted: readonly [string, DownloadError['fault']][] = [
    [`http://a.test:${silent.port}/`, 'timeout'],
    [`http://a.test:${portOf(broken)}/`, 'connection'],
    [`http://a.test:${portOf(reset)}/`, 'connection'],
    [`https://a.test:${portOf(broken)}/`, 'tls'],
    [`http://a.test:${closed}/`, 'connection'],
    [`http://inside.test:${closed}/`, 'blocked'],
    [`http://nowhere.test:${closed}/`, 'dns'],
    [`http://10.0.0.1:${closed}/`, 'blocked'],
    ['http://a.test:22/', 'port'],
  ];
  const reasons = new Set<string>();
  for (const [url, fault] of wanted) {
    for (const address of [url, `http://moved.test:${moved.port}/${encodeURIComponent(url)}`]) {
      const error = await t.throwsAsync(download(address, never), { instanceOf: DownloadError });
      t.is(error.fault, fault, address);
      t.is(error.kind, 'failed', address);
      reasons.add(error.reason);
    }
  }
  t.is(reasons.size, 1, [...reasons].join(' | '));
});

test('only allowed ports are contacted, also after redirects; a listed host on its own port', async (t) => {
  let asked = 0;
  const hidden = await listenHere(t, (_req, res) => {
    asked += 1;
    res.end('inside');
  });
  const { port } = await serve(t, (_req, res) =>
    res.writeHead(307, { Location: `http://other.test:${hidden.port}/` }).end(),
  );
  const only = { ports: [port], allowHosts: ['127.0.0.1'] };
  for (const url of [
    `http://a.test:${hidden.port}/`,
    `http://127.0.0.1:${hidden.port}/`,
    `http://a.test:${port}/`,
    `https://a.test:${hidden.port}/`,
  ])
    await failsWith(t, createDownload(loopback(only))(url, never), 'failed', unreachable, 'port');
  t.is(asked, 0);
  const listed = createDownload(loopback({ ports: [port], allowHosts: [`127.0.0.1:${hidden.port}`] }));
  t.is((await listed(`http://127.0.0.1:${hidden.port}/`, never)).toString(), 'inside');
});

test('a port that a listed host names may be the usual one of the scheme', async (t) => {
  const hosts = createHostRule({ mode: 'listed', allowHosts: ['a.test:80', 'b.test'], ports: [443] });
  t.is(hosts('a.test', 80), 'listed');
  t.is(hosts('a.test', 443), 'denied-host');
  t.is(hosts('b.test', 443), 'listed');
  t.is(hosts('b.test', 80), 'denied-port');
  t.is(hosts('c.test', 443), 'denied-host');
  t.is(portOf(new URL('http://a.test:80/')), 80);
  t.is(portOf(new URL('https://a.test/')), 443);
});

test('with downloads off, or outside the listed hosts, an address is refused at once and nothing is contacted', async (t) => {
  let asked = 0;
  const { port } = await serve(t, (_req, res) => {
    asked += 1;
    res.end('inside');
  });
  const url = `http://127.0.0.1:${port}/`;
  const off = createDownloader(loopback({ mode: 'off', allowHosts: [`127.0.0.1:${port}`] }));
  const refused = t.throws(() => off.check(url), { instanceOf: DownloadError });
  t.is(refused.kind, 'url');
  t.regex(refused.reason, /does not download images\. Upload/);
  const listed = createDownloader(
    loopback({ mode: 'listed', allowHosts: ['images.test', `b.test:${port}`] }),
  );
  for (const other of [url, `http://images.test:${port + 1}/`, 'http://b.test/'])
    t.throws(() => listed.check(other), { instanceOf: DownloadError, message: /listed hosts only/ });
  t.is(asked, 0);
  t.notThrows(() => listed.check(`http://images.test:${port}/`));
  const download = createDownload({ ...rules, mode: 'listed', allowHosts: [`127.0.0.1:${port}`] });
  t.is((await download(url, never)).toString(), 'inside');
});

test('in listed mode a redirect to another host is not followed', async (t) => {
  let asked = 0;
  const { port } = await serve(t, (_req, res) => {
    asked += 1;
    res.end('elsewhere');
  });
  const first = await serve(t, (_req, res) =>
    res.writeHead(302, { Location: `http://localhost:${port}/` }).end(),
  );
  const download = createDownload(loopback({ mode: 'listed', allowHosts: [`127.0.0.1:${first.port}`] }));
  await failsWith(
    t,
    download(`http://127.0.0.1:${first.port}/`, never),
    'failed',
    /^The host could not be reached or is not allowed\.$/,
    'blocked',
  );
  t.is(asked, 0);
});

test('memory is requested before bytes are kept; without it the connection is closed', async (t) => {
  const { port } = await serve(t, (req, res) => {
    if (req.url === '/announced') res.setHeader('Content-Length', 8e6);
    else res.setHeader('Transfer-Encoding', 'chunked');
    const timer = setInterval(() => res.write(Buffer.alloc(100_000)), 1);
    res.on('close', () => {
      clearInterval(timer);
      hungUp.push(req.url ?? '');
    });
  });
  const hungUp: string[] = [];
  const download = createDownload(loopback());
  for (const path of ['/announced', '/chunked']) {
    let granted = 0;
    const room = (bytes: number) => {
      if (granted + bytes > 2e6) return false;
      granted += bytes;
      return true;
    };
    await failsWith(t, download(`http://a.test:${port}${path}`, never, room), 'memory', /not enough memory/);
    t.true(granted > 1.5e6 && granted <= 2e6);
  }
  await eventually(() => hungUp.length === 2);
});

test('memory is requested as bytes arrive: once for an announced length, twice without one', async (t) => {
  const bytes = Buffer.alloc(3e6, 7);
  const { port } = await serve(t, (req, res) => {
    if (req.url === '/announced') res.setHeader('Content-Length', bytes.length);
    res.write(bytes);
    res.end();
  });
  const download = createDownload(loopback());
  for (const [path, times] of [
    ['announced', 1],
    ['chunked', 2],
  ] as const) {
    let granted = 0;
    const got = await download(`http://a.test:${port}/${path}`, never, (more) => {
      granted += more;
      return true;
    });
    t.true(bytes.equals(got));
    t.true(
      granted >= times * bytes.length && granted < times * bytes.length + 300_000,
      `${path}: ${granted}`,
    );
  }
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

test('listed hosts are fetched from whatever their addresses are', async (t) => {
  const { port } = await serve(t, (_req, res) => res.end('inside'));
  const url = `http://127.0.0.1:${port}/`;
  for (const host of ['127.0.0.1', `127.0.0.1:${port}`])
    t.is((await createDownload({ ...rules, allowHosts: [host] })(url, never)).toString(), 'inside');
  const other = createDownload({ ...rules, allowHosts: ['127.0.0.1:1', '127.0.0.2'] });
  await failsWith(t, other(url, never), 'failed', unreachable, 'blocked');
  const byName = createDownload({ ...rules, allowHosts: ['localhost'] });
  t.is((await byName(`http://localhost:${port}/`, never)).toString(), 'inside');
});
