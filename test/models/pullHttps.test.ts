import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test, { type ExecutionContext } from 'ava';
import { pullNetwork } from '../../src/models/pull.ts';
import { type Fetch, httpsSource } from '../../src/models/source/https.ts';
import { published, READY, sha256, tinyManifest, type Workplace, workplace } from '../fixtures/networks.ts';

const ADDRESS = 'https://models.test/tiny.onnx';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server on loopback that stands in for https://models.test; `requests` are the received Range headers. */
async function serve(t: ExecutionContext, handler: Handler): Promise<{ fetch: Fetch; ranges: string[] }> {
  const ranges: string[] = [];
  const server = createServer((request, response) => {
    ranges.push(request.headers.range ?? '');
    handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const fetch: Fetch = (url, init) => {
    const local = new URL(url);
    if (local.protocol !== 'https:') throw new Error(`${url} was asked for`);
    return globalThis.fetch(`http://127.0.0.1:${port}${local.pathname}`, init);
  };
  return { fetch, ranges };
}

/** Answers as a good file server does: Range, If-Range, ETag. */
function sendFile(file: Uint8Array, etag = '"1"'): Handler {
  return (request, response) => {
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const condition = request.headers['if-range'];
    const resumed = start > 0 && (condition === undefined || condition === etag);
    if (resumed && start >= file.length) {
      response.writeHead(416).end();
      return;
    }
    const from = resumed ? start : 0;
    response.writeHead(resumed ? 206 : 200, {
      etag,
      'content-length': file.length - from,
      ...(resumed && { 'content-range': `bytes ${start}-${file.length - 1}/${file.length}` }),
    });
    response.end(file.subarray(from));
  };
}

/** Waits until that many bytes of a download are on disk. */
async function arrived(place: Workplace, bytes: number): Promise<void> {
  const part = path.join(place.modelsDir, 'tiny', '.pull-part');
  while ((await stat(part).catch(() => ({ size: -1 }))).size !== bytes) await sleep(10);
}

/** Sends the first bytes of an answer and breaks the connection once they are on disk. */
function breakAfter(place: Workplace, bytes: number, etag = '"1"'): Handler {
  return (_request, response) => {
    response.writeHead(200, { etag, 'content-length': published.length });
    response.write(published.subarray(0, bytes));
    void arrived(place, bytes).then(() => response.destroy());
  };
}

async function isReady(t: ExecutionContext, place: Workplace): Promise<void> {
  t.deepEqual(await place.files(), READY);
  t.deepEqual(await readFile(path.join(place.modelsDir, 'tiny', 'source.onnx')), Buffer.from(published));
}

test('a file is fetched, verified and prepared, and its licence is reported', async (t) => {
  const place = await workplace(t);
  const { fetch } = await serve(t, sendFile(published));
  const record = await pullNetwork(
    await place.entry({ kind: 'https', url: ADDRESS }),
    place.options({ fetch }),
  );
  await isReady(t, place);
  t.true(record.freeBatch);
  t.is(record.sourceSha256, sha256(published));
  t.deepEqual(place.recorder.phases(), ['download', 'prepare']);
  t.deepEqual(place.recorder.steps.filter(({ phase }) => phase === 'download').at(-1), {
    phase: 'download',
    network: 'tiny',
    bytes: published.length,
    total: published.length,
  });
  t.is(place.recorder.notices.length, 1);
  t.regex(
    place.recorder.notices[0] ?? '',
    /^The weights of tiny are under AGPL-3\.0\. A note\.\n.*birefnet-general-lite/,
  );
});

test('an existing valid file is not fetched again', async (t) => {
  const place = await workplace(t);
  const entry = await place.entry({ kind: 'https', url: ADDRESS });
  const { fetch, ranges } = await serve(t, sendFile(published));
  const first = await pullNetwork(entry, place.options({ fetch }));
  t.deepEqual(await pullNetwork(entry, place.options({ fetch })), first);
  t.is(ranges.length, 1);
});

test('a broken connection is resumed at its position', async (t) => {
  const place = await workplace(t);
  let calls = 0;
  const { fetch, ranges } = await serve(t, (...args) =>
    (calls++ === 0 ? breakAfter(place, 500) : sendFile(published))(...args),
  );
  await pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch }));
  t.deepEqual(ranges, ['', 'bytes=500-']);
  await isReady(t, place);
});

test('a full disk is reported as that, and no other source is asked', async (t) => {
  const place = await workplace(t);
  const source = { kind: 'https', url: ADDRESS } as const;
  const entry = await place.entry(source, undefined, { mirrors: [source] });
  const { fetch, ranges } = await serve(t, sendFile(published));
  const folder = path.join(place.modelsDir, 'tiny');
  await mkdir(folder, { recursive: true });
  // Writing to it fails as on a full disk.
  await symlink('/dev/full', path.join(folder, '.pull-part'));
  await t.throwsAsync(pullNetwork(entry, place.options({ fetch })), {
    code: 'MODEL_UNWRITABLE',
    message: `The files of tiny cannot be written to ${folder}: the disk is full.`,
  });
  t.is(ranges.length, 1);
});

test('a failed pull is continued by the next one', async (t) => {
  const place = await workplace(t);
  const entry = await place.entry({ kind: 'https', url: ADDRESS });
  let calls = 0;
  const { fetch, ranges } = await serve(t, (request, response) => {
    calls++;
    if (calls === 1) breakAfter(place, 700)(request, response);
    else if (calls === 2) response.destroy();
    else sendFile(published)(request, response);
  });
  await t.throwsAsync(pullNetwork(entry, place.options({ fetch })), {
    code: 'MODEL_SOURCE',
    message: new RegExp(
      `ended after 700 of ${published.length} bytes.*Run \`cutout models pull tiny\` again`,
    ),
  });
  t.deepEqual(await place.files(), ['.pull-part', '.pull-part.json']);
  await pullNetwork(entry, place.options({ fetch }));
  t.deepEqual(ranges, ['', 'bytes=700-', 'bytes=700-']);
  await isReady(t, place);
});

test('a body is not lost while it is not read', async (t) => {
  const { fetch } = await serve(t, sendFile(published));
  const open = httpsSource(ADDRESS, published.length, fetch);
  const { bytes } = await open({ offset: 0 }, new AbortController().signal);
  setFlagsFromString('--expose_gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 20; round++) {
    collect();
    await sleep(5);
  }
  const received: Uint8Array[] = [];
  for await (const chunk of bytes) received.push(chunk);
  t.deepEqual(Buffer.concat(received), Buffer.from(published));
});

test('a file that changed in the meantime is fetched from its beginning', async (t) => {
  const place = await workplace(t);
  let calls = 0;
  const handler = (): Handler =>
    calls++ === 0 ? breakAfter(place, 500, '"old"') : sendFile(published, '"new"');
  const { fetch, ranges } = await serve(t, (...args) => handler()(...args));
  await pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch }));
  t.deepEqual(ranges, ['', 'bytes=500-']);
  await isReady(t, place);
});

test('a server that cannot resume is asked for the whole file', async (t) => {
  const place = await workplace(t);
  let calls = 0;
  const { fetch, ranges } = await serve(t, (request, response) => {
    calls++;
    if (calls === 1) breakAfter(place, 500)(request, response);
    else if (calls === 2) response.writeHead(416).end();
    else sendFile(published)(request, response);
  });
  await pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch }));
  t.deepEqual(ranges, ['', 'bytes=500-', '']);
  await isReady(t, place);
});

test('a complete download without its final name is verified, not fetched again', async (t) => {
  const place = await workplace(t);
  const entry = await place.entry({ kind: 'https', url: ADDRESS });
  let calls = 0;
  const { fetch, ranges } = await serve(t, (request, response) => {
    if (calls++ === 0) breakAfter(place, 700)(request, response);
    else response.destroy();
  });
  await t.throwsAsync(pullNetwork(entry, place.options({ fetch })));
  await writeFile(path.join(place.modelsDir, 'tiny', '.pull-part'), published);
  const before = ranges.length;
  await pullNetwork(entry, place.options({ fetch }));
  t.is(ranges.length, before);
  await isReady(t, place);
});

test('a wrong checksum deletes the download and is reported with both checksums', async (t) => {
  const place = await workplace(t);
  const other = published.slice();
  other[other.length - 20] = (other[other.length - 20] ?? 0) ^ 1;
  const { fetch } = await serve(t, sendFile(other));
  await t.throwsAsync(
    pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch })),
    {
      code: 'MODEL_CHECKSUM',
      message: `The download of tiny has sha256 ${sha256(other)}, expected ${sha256(published)}; it was deleted.`,
    },
  );
  t.deepEqual(await place.files(), []);
});

test('a different announced length is refused before anything is read', async (t) => {
  const place = await workplace(t);
  const { fetch } = await serve(t, sendFile(published.subarray(1)));
  await t.throwsAsync(
    pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch })),
    {
      code: 'MODEL_SOURCE',
      message: `${ADDRESS} holds ${published.length - 1} bytes, expected ${published.length}.`,
    },
  );
  t.deepEqual(await place.files(), []);
});

test('a source that sends too much is stopped', async (t) => {
  const place = await workplace(t);
  const { fetch } = await serve(t, (_request, response) => {
    response.writeHead(200); // chunked, no length announced
    const send = () =>
      response.write(published, (error) => error || response.destroyed || setImmediate(send));
    send();
  });
  await t.throwsAsync(
    pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch })),
    {
      code: 'MODEL_CHECKSUM',
      message: /more than the expected/,
    },
  );
  t.deepEqual(await place.files(), []);
});

test('redirects are followed while they stay on https', async (t) => {
  const place = await workplace(t);
  const { fetch } = await serve(t, (request, response) => {
    if (request.url === '/moved.onnx') sendFile(published)(request, response);
    else response.writeHead(302, { location: 'https://cdn.test/moved.onnx' }).end();
  });
  await pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch }));
  await isReady(t, place);
});

test('a redirect to plain http is refused', async (t) => {
  const place = await workplace(t);
  const { fetch } = await serve(t, (_request, response) => {
    response.writeHead(302, { location: 'http://cdn.test/moved.onnx' }).end();
  });
  await t.throwsAsync(
    pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch })),
    {
      code: 'MODEL_SOURCE',
      message: /leads to http:\/\/cdn\.test: only https/,
    },
  );
});

test('redirects in a circle end', async (t) => {
  const place = await workplace(t);
  const { fetch, ranges } = await serve(t, (_request, response) => {
    response.writeHead(302, { location: ADDRESS }).end();
  });
  await t.throwsAsync(
    pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch })),
    {
      code: 'MODEL_SOURCE',
      message: /redirects more than 5 times/,
    },
  );
  t.is(ranges.length, 6);
});

test('an error status is reported', async (t) => {
  const place = await workplace(t);
  const { fetch } = await serve(t, (_request, response) => {
    response.writeHead(404).end('not here');
  });
  await t.throwsAsync(
    pullNetwork(await place.entry({ kind: 'https', url: ADDRESS }), place.options({ fetch })),
    {
      code: 'MODEL_SOURCE',
      message: `${ADDRESS} answered with status 404.`,
    },
  );
});

test('a cancelled pull stops and can be continued', async (t) => {
  const place = await workplace(t);
  const entry = await place.entry({ kind: 'https', url: ADDRESS });
  const controller = new AbortController();
  const { fetch } = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-length': published.length, etag: '"1"' });
    response.write(published.subarray(0, 300));
    void arrived(place, 300).then(() => controller.abort(new Error('enough')));
  });
  await t.throwsAsync(pullNetwork(entry, { ...place.options({ fetch }), signal: controller.signal }), {
    message: 'enough',
  });
  t.deepEqual(await place.files(), ['.pull-part', '.pull-part.json']);
});

test('another address or a local file may be used if the checksum matches', async (t) => {
  const place = await workplace(t);
  const entry = await place.entry({ kind: 'https', url: 'https://gone.test/x.onnx' });
  const { fetch } = await serve(t, sendFile(published));
  await pullNetwork(entry, { ...place.options({ fetch }), from: 'https://mirror.test/x.onnx' });
  await isReady(t, place);

  const second = await workplace(t);
  const local = path.join(entry.folder, 'published.onnx');
  await pullNetwork(entry, { ...second.options(), from: local });
  await isReady(t, second);

  const third = await workplace(t);
  await t.throwsAsync(pullNetwork(entry, { ...third.options(), from: `${local}x` }), {
    code: 'MODEL_SOURCE',
    message: /does not exist or cannot be read/,
  });
  await t.throwsAsync(pullNetwork(entry, { ...third.options(), from: 'http://mirror.test/x.onnx' }), {
    code: 'MODEL_SOURCE',
    message: /only https/,
  });
});

test('a manifest may name a file in its folder', async (t) => {
  const place = await workplace(t);
  const entry = await place.entry({ kind: 'file', path: 'published.onnx' });
  await pullNetwork(entry, place.options());
  await isReady(t, place);
  t.is(tinyManifest(entry.manifest.source).file.sha256, sha256(published));
});
