import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { modelsFolder, type Serving, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { dial, rawRequest } from '../fixtures/rawHttp.ts';
import { eventually } from '../fixtures/service.ts';

/** Attacks on a real server without a key, other than bodies (bodies.test.ts). */
const serve = (t: ExecutionContext, env: Readonly<Record<string, string>> = {}): Promise<Serving> => {
  const data = temporaryFolder(t);
  return startServing(t, {
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')),
    ...env,
  });
};

const get = (port: number, target: string, host = 'a', method = 'GET') =>
  rawRequest(port, (socket) => {
    socket.write(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  });

const isAlive = async (server: Serving) => (await fetch(`${server.url}/health/live`)).status === 200;

/** Request targets that node:http accepts; all but the first are invalid. */
const targets = [
  'http://a/nowhere',
  'http://[::1',
  'http://[',
  'http://[::1]:99999999/',
  'http://a:b:c/',
  'http://%/',
  'http://a%zz/',
  'http://\\\\/',
  'http:///',
  'http:',
  'https://[::1/v1.0/removebg',
  'ftp://[x/',
  '//a@[b#',
  '//[::1#',
  '//',
  '//[',
  '*',
  '?',
  '#',
  '/#',
  '/nowhere#[',
  '/%',
  '/%ff%00%2e%2e',
  '/assets/%',
  '/assets/%ff',
  '/assets/%00',
  '/sign-in/%ff',
  '/admin/v1/accounts/%e0%a4%a',
  '/\xa0http://[',
  '\xa0',
  'javascript:alert(1)',
  'a',
  '[',
  ':',
  '::',
  '@',
  'x:y:z',
  'http://a@b@[',
];

test('no request target ends the process: each gets a 4xx answer', async (t) => {
  const server = await serve(t, { CUTOUT_METRICS_PORT: '0' });
  const metrics = Number(/^Metrics +http:\/\/[^/]*:(\d+)/m.exec(server.stderr())?.[1]);
  for (const port of [server.port, metrics]) {
    for (const target of targets) {
      for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE']) {
        const answer = await get(port, target, 'a', method).catch((error: unknown) =>
          t.fail(`${target}: ${error}`),
        );
        if (typeof answer === 'boolean') continue;
        t.true(answer.status >= 200 && answer.status < 500, `${method} ${target}: ${answer.status}`);
        if (answer.status >= 400 && answer.body !== '')
          t.is(JSON.parse(answer.body).errors.length, 1, `${method} ${target}`);
      }
    }
    const { status, headers, body } = await get(port, 'http://[::1');
    t.is(status, 400);
    t.truthy(headers['x-request-id']);
    t.is(JSON.parse(body).errors[0].code, 'malformed_request');
  }
  t.true(await isAlive(server));
  t.is(server.child.exitCode, null);
});

test('a log reader that stops reading blocks nothing; dropped lines are counted and reported', async (t) => {
  const server = await serve(t, { CUTOUT_METRICS_PORT: '0' });
  const metrics = /^Metrics +(http:\S+)/m.exec(server.stderr())?.[1] ?? '';
  const dropped = async () =>
    Number(/^cutout_log_lines_dropped_total (\d+)$/m.exec(await (await fetch(metrics)).text())?.[1]);
  t.is(await dropped(), 0);
  const { stdout } = server.child;
  stdout?.pause();
  const long = 'x'.repeat(180);
  let sent = 0;
  // More than the pipe and the queue hold; every request is answered although nothing is read.
  while ((await dropped()) === 0 && sent < 100_000) {
    const answers = Array.from({ length: 500 }, async () => {
      const answer = await fetch(`${server.url}/${long}`, { signal: AbortSignal.timeout(30_000) });
      await answer.text();
      return answer.status;
    });
    t.deepEqual(new Set(await Promise.all(answers)), new Set([404]));
    sent += 500;
  }
  t.true((await dropped()) > 0, `${sent} requests`);
  stdout?.resume();
  await eventually(() => server.stdout().includes('lines were dropped'));
  const lines = server
    .stdout()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  const report = lines.find(({ msg }) => msg?.includes('lines were dropped'));
  t.is(lines.filter(({ path: asked }) => asked?.includes(long)).length + report.dropped, sent);
  await fetch(`${server.url}/last`);
  server.child.kill('SIGTERM');
  const { code, stdout: all } = await server.ended;
  t.is(code, 0);
  t.regex(all.toString(), /"path":"\/last"[\s\S]*"stopped"/);
});

test('a log reader that stops reading does not keep the service from stopping', async (t) => {
  const server = await serve(t);
  server.child.stdout?.pause();
  // More than a pipe holds.
  for (let round = 0; round < 20; round++)
    await Promise.all(Array.from({ length: 100 }, () => fetch(`${server.url}/${'x'.repeat(180)}`)));
  server.child.kill('SIGTERM');
  const [code] = await once(server.child, 'exit');
  t.is(code, 0);
});

test('the length of the host name is bounded, and the name is escaped where it is shown', async (t) => {
  const server = await serve(t);
  for (const target of ['/docs', '/', '/health/live', '/console/api/session']) {
    const { status, body } = await get(server.port, target, 'h<">'.repeat(7000));
    t.is(status, 400, target);
    t.regex(
      JSON.parse(body).errors[0].detail,
      /^The Host header has 28000 characters, at most \d+ are accepted/,
    );
  }
  const longest = `${'h'.repeat(255)}:65535`;
  t.is((await get(server.port, '/docs', longest)).status, 200);
  const { status, body } = await get(server.port, '/docs', 'h<">&');
  t.is(status, 200);
  t.true(body.includes('http://h&lt;&quot;&gt;&amp;/v1.0/cutout'));
  t.false(body.includes('h<">'));
});

(existsSync('/proc/self/fd') ? test : test.skip)(
  'pipelined requests of a client that disconnected hold no file open',
  async (t) => {
    const server = await serve(t);
    t.is((await fetch(server.url)).status, 200);
    const open = () => readdirSync(`/proc/${server.child.pid}/fd`).length;
    const before = open();
    for (let round = 0; round < 10; round++) {
      const socket = await dial(server.port);
      socket.on('error', () => {});
      socket.resume();
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3000));
      await once(socket, 'close');
    }
    // Kept-alive connections of this test's client come and go.
    await eventually(() => open() < before + 5);
    t.true(await isAlive(server));
  },
);
