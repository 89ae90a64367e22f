import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import sharp from 'sharp';
import { scene } from '../fixtures/images.ts';
import { dial, rawRequest } from '../fixtures/rawHttp.ts';
import { eventually, form, startService } from '../fixtures/service.ts';

const grain = { type: 'gaussian', mean: 100, sigma: 40 } as const;
const codeOf = (body: string): unknown => JSON.parse(body).errors[0].code;

test.serial('a head that arrives byte by byte is cut off in time', async (t) => {
  const service = await startService(t, { headMs: 300 });
  const started = performance.now();
  const answer = await rawRequest(service.address.port, async (socket) => {
    for (const letter of 'GET /health/live HTTP/1.1\r\nHost: x\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaa') {
      if (socket.destroyed || !socket.writable) break;
      socket.write(letter);
      await sleep(20);
    }
  });
  t.is(answer.status, 504);
  t.is(codeOf(answer.body), 'timeout');
  t.true(performance.now() - started < 10_000);
});

for (const [what, head] of [
  ['one huge header', `X-Flood: ${'a'.repeat(40_000)}\r\n`],
  ['very many headers', 'X-Flood: a\r\n'.repeat(5000)],
  ['headers without end', 'X-Flood: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n'.repeat(100_000)],
] as const)
  test.serial(`a flood of headers is refused: ${what}`, async (t) => {
    const service = await startService(t);
    const answer = await rawRequest(service.address.port, (socket) => {
      socket.on('error', () => {});
      socket.write(`GET /health/live HTTP/1.1\r\nHost: x\r\n${head}`);
    });
    t.is(answer.status, 400);
    t.is(codeOf(answer.body), 'malformed_request');
    t.is((await fetch(`${service.url}/health/live`)).status, 200);
  });

test.serial('a stalled upload gets an error, and its memory is released', async (t) => {
  const service = await startService(t, { stallMs: 300 });
  const started = performance.now();
  const answer = await rawRequest(service.address.port, (socket) => {
    socket.write(
      `POST /v1.0/cutout HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${service.key}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"size":`,
    );
  });
  t.is(answer.status, 504);
  t.is(codeOf(answer.body), 'timeout');
  t.true(performance.now() - started < 10_000);
  await eventually(() => service.memory.stats.held === 0);
  t.is(service.calls(), 0);
});

test.serial("an upload that trickles endlessly ends with the request's time limit", async (t) => {
  const service = await startService(t, { stallMs: 300, timeout: 1 });
  const started = performance.now();
  const answer = await rawRequest(service.address.port, async (socket) => {
    socket.on('error', () => {});
    socket.write(
      `POST /v1.0/cutout HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${service.key}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n`,
    );
    while (!socket.destroyed && performance.now() - started < 15_000) {
      socket.write(' ');
      await sleep(50);
    }
  });
  t.is(answer.status, 504);
  t.true(performance.now() - started < 10_000);
  await eventually(() => service.memory.stats.held === 0);
});

test.serial('data that arrived while the event loop was blocked counts as received', async (t) => {
  const service = await startService(t, { stallMs: 500 });
  const text = JSON.stringify({ image_file_b64: (await scene()).toString('base64') });
  const answer = await rawRequest(service.address.port, async (socket) => {
    socket.write(
      `POST /v1.0/cutout HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${service.key}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text.slice(0, 100)}`,
    );
    await sleep(100);
    // After this phase of the event loop come timers, then sockets.
    await new Promise(setImmediate);
    socket.write(text.slice(100));
    const blocked = performance.now();
    while (performance.now() - blocked < 1000);
  });
  t.is(answer.status, 200);
});

test.serial('a client that does not take its answer is disconnected, and the memory released', async (t) => {
  t.timeout(90_000);
  // Long enough for an upload of several megabytes on a machine that is busy.
  const service = await startService(t, { stallMs: 2000 });
  // Noise, so that each answer exceeds the system's buffers.
  const noise = { width: 1600, height: 1600, channels: 3 as const, background: '#000', noise: grain };
  const image = await sharp({ create: noise }).jpeg({ quality: 95 }).toBuffer();
  const socket = await dial(service.address.port);
  socket.on('error', () => {});
  socket.pause();
  const body = Buffer.from(
    await new Response(form({ image_file: image, size: 'full', format: 'png' })).arrayBuffer(),
  );
  const boundary = body.subarray(2, body.indexOf('\r\n')).toString();
  const head = `POST /v1.0/cutout HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${service.key}\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\nContent-Length: ${body.length}\r\n\r\n`;
  for (let i = 0; i < 3; i++) socket.write(Buffer.concat([Buffer.from(head), body]));
  await eventually(() => service.calls() > 0);
  const connections = () =>
    new Promise<number>((resolve) => service.server.getConnections((_, count) => resolve(count)));
  const started = performance.now();
  while ((await connections()) > 0 && performance.now() - started < 60_000) await sleep(50);
  t.is(await connections(), 0);
  await eventually(() => service.memory.stats.held === 0);
  socket.destroy();
});

test.serial('a client that waits for long work does not count as dead', async (t) => {
  const service = await startService(t, { stallMs: 200 });
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  const answer = service.post(form({ image_file: await scene() }));
  await eventually(() => service.engine.running === 1);
  await sleep(1000);
  release();
  t.is((await answer).status, 200);
});

test.serial(
  'a pipelined request that is in progress while the answer to a later one is ready is not closed as stalled',
  async (t) => {
    const service = await startService(t, { stallMs: 200 });
    let release = () => {};
    service.engine.hold = new Promise((resolve) => {
      release = resolve;
    });
    const text = JSON.stringify({ image_file_b64: (await scene()).toString('base64') });
    const head = `Host: x\r\nX-Api-Key: ${service.key}\r\n`;
    const answer = await rawRequest(service.address.port, async (socket) => {
      socket.write(
        `POST /v1.0/cutout HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
      );
      await eventually(() => service.engine.running === 1);
      socket.write(`GET /v1.0/account HTTP/1.1\r\n${head}Connection: close\r\n\r\n`);
      await sleep(1000);
      release();
    });
    t.is(answer.status, 200);
    t.is(service.engine.cancelled, 0);
  },
);

test('how long an idle connection is kept is announced, and that a stopping server closes it', async (t) => {
  const service = await startService(t);
  const get = () => fetch(`${service.url}/health/live`, { headers: { Connection: 'keep-alive' } });
  t.is((await get()).headers.get('keep-alive'), 'timeout=65');
  service.health.draining();
  t.is((await get()).headers.get('connection'), 'close');
});

test('connections that send nothing, closed or reset, leave no line and no failed attempt', async (t) => {
  const service = await startService(t, { attempts: 5 });
  for (let i = 0; i < 300; i++) {
    const socket = connect(service.address.port, '127.0.0.1');
    await once(socket, 'connect');
    if (i % 2 === 0) socket.end();
    else socket.resetAndDestroy();
  }
  await eventually(
    () => new Promise((resolve) => service.server.getConnections((_, count) => resolve(count === 0))),
  );
  t.deepEqual(service.lines(), []);
  t.is((await service.post(form({ image_file: await scene() }))).status, 200);
});

test.serial('an idle kept-alive connection is closed', async (t) => {
  const service = await startService(t, { stallMs: 300 });
  service.server.keepAliveTimeout = 200;
  const started = performance.now();
  const answer = await rawRequest(service.address.port, (socket) => {
    socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
  });
  t.is(answer.status, 200);
  t.true(performance.now() - started < 10_000);
});

test.serial(
  '10000 idle connections: the next request is answered at once, and they are closed in time',
  async (t) => {
    t.timeout(60_000);
    const service = await startService(t, { stallMs: 8000, headMs: 8000 });
    const count = 10_000;
    const script = fileURLToPath(new URL('../fixtures/idleConnections.js', import.meta.url));
    const before = process.memoryUsage.rss();
    const child = spawn(process.execPath, [script, String(service.address.port), String(count)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    const ended = once(child, 'close');
    await once(child.stdout, 'data');
    const each = (process.memoryUsage.rss() - before) / count;
    const started = performance.now();
    t.is((await fetch(`${service.url}/health/live`)).status, 200);
    const ms = performance.now() - started;
    t.log(`${(each / 1000).toFixed(1)} kB a connection, health after ${ms.toFixed(0)} ms`);
    t.true(each < 50_000, `${each} bytes a connection`);
    // Long before they are closed: it did not wait for that.
    t.true(ms < 4000, `${ms} ms`);
    await ended;
    t.is((await service.post(form({ image_file: await scene() }))).status, 200);
  },
);
