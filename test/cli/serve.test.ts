import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { Agent, request } from 'undici';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import { cli, modelsFolder, type Serving, startCli, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { eventually, form } from '../fixtures/service.ts';

const image = () => scene({ width: 300, height: 200 });
const slow = { convolutions: 40 };

function setUp(t: ExecutionContext, tiny = {}) {
  const data = temporaryFolder(t);
  return {
    data,
    env: { CUTOUT_DATA_DIR: data, CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models'), tiny) },
    key: () => readFileSync(path.join(data, 'local-key'), 'utf8').trim(),
  };
}

const post = async (server: Serving, key: string, body?: FormData) =>
  fetch(`${server.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': key },
    body: body ?? form({ image_file: await image(), size: 'full' }),
  });

/** Waits until a request has its reservation; only then is it processed. */
async function atWork(dataDir: string): Promise<void> {
  const stores = await openStores({ dataDir, billing: standardBilling });
  await eventually(async () => (await stores.ledger.openReservations()) > 0);
  await stores.close();
}

const requests = (server: Serving) =>
  server
    .stdout()
    .split('\n')
    .filter((line) => line.includes('"POST"'));

test.serial('the printed curl line works, on the first start and on the next', async (t) => {
  const { data, env, key } = setUp(t);
  const photo = path.join(data, 'photo.jpg');
  writeFileSync(photo, await image());
  for (const start of ['first', 'second']) {
    const server = await startServing(t, env);
    const text = server.stderr();
    // Without a terminal the log says where key and link are stored, and contains neither.
    t.false((text + server.stdout()).includes(key()), start);
    t.notRegex(text + server.stdout(), /\/#[0-9a-z]{32}/);
    for (const name of ['local-key', 'console-link']) {
      t.true(text.includes(path.join(data, name)), name);
      t.is(statSync(path.join(data, name)).mode & 0o777, 0o600, name);
    }
    const [address, token] = readFileSync(path.join(data, 'console-link'), 'utf8').trim().split('/#');
    t.is(address, server.url);
    const opened = await fetch(`${server.url}/console/api/link`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ token }),
    });
    t.like(await opened.json(), { signedIn: true, operator: true });
    const line = /^ {2}(curl .*)$/m.exec(text)?.[1];
    t.truthy(line, text);
    await promisify(execFile)('/bin/sh', ['-c', `${line} -sS --fail`], { cwd: data });
    const result = path.join(data, 'cutout.png');
    t.like(await sharp(readFileSync(result)).metadata(), {
      format: 'png',
      width: 300,
      height: 200,
      channels: 4,
    });
    server.child.kill('SIGTERM');
    t.is((await server.ended).code, 0);
  }
});

/** util-linux' program that gives another one a terminal; all its output is combined. */
const terminal = ['sh', '-c', 'exec script --quiet --flush --return --command "$*" /dev/null', 'sh'];

(existsSync('/usr/bin/script') ? test.serial : test.serial.skip)(
  'on a terminal key and link are shown: the key once, when it is made',
  async (t) => {
    const { data, env, key } = setUp(t);
    for (const start of ['first', 'second']) {
      const server = startCli(
        t,
        ['serve', '--no-pull'],
        { CUTOUT_PORT: '0', ...env },
        undefined,
        undefined,
        terminal,
      );
      await eventually(() => /removebg\r?\n/.test(server.stdout()));
      t.is(server.stdout().includes(key()), start === 'first');
      t.regex(server.stdout(), /http:\/\/127\.0\.0\.1:\d+\/#[0-9a-z]{32}\b/);
      t.false(existsSync(path.join(data, 'console-link')));
      server.child.kill('SIGTERM');
      await server.ended;
    }
  },
);

test.serial('CUTOUT_API_KEY becomes the key at the first start', async (t) => {
  const { env } = setUp(t);
  const server = await startServing(t, { ...env, CUTOUT_API_KEY: 'my-own-key-of-the-lab' });
  t.is((await post(server, 'my-own-key-of-the-lab')).status, 200);
  t.is((await post(server, 'another')).status, 403);
});

test.serial("the cut-out is the network's, at its position", async (t) => {
  const { env, key } = setUp(t);
  const server = await startServing(t, env);
  const subject = { left: 100, top: 50, width: 120, height: 90 };
  const body = form({
    image_file: await scene({ width: 320, height: 320, subject, format: 'png' }),
    size: 'full',
  });
  const answer = await post(server, key(), body);
  t.is(answer.status, 200);
  const { data } = await sharp(Buffer.from(await answer.arrayBuffer()))
    .raw()
    .toBuffer({ resolveWithObject: true });
  const at = (x: number, y: number) => [...data.subarray((y * 320 + x) * 4, (y * 320 + x) * 4 + 4)];
  t.deepEqual(at(160, 95), [200, 40, 60, 255]);
  t.deepEqual(at(10, 10), [0, 0, 0, 0]);
  for (const [name, value] of Object.entries({ left: 100, top: 50, width: 120, height: 90 }))
    t.true(Math.abs(Number(answer.headers.get(`x-foreground-${name}`)) - value) <= 2, name);
});

test.serial('a missing temporary folder has no effect: uploads stay in memory', async (t) => {
  const { env, key } = setUp(t);
  const server = await startServing(t, { ...env, TMPDIR: '/nowhere/at/all' });
  t.is((await post(server, key())).status, 200);
});

test.serial('keys never reach the log, valid or not', async (t) => {
  const { env, key } = setUp(t);
  const server = await startServing(t, { ...env, CUTOUT_LOG_LEVEL: 'debug' });
  await post(server, key());
  await post(server, 'wrong-key-0123456789');
  await fetch(`${server.url}/v1.0/cutout?api_key=${key()}`, {
    headers: { Authorization: `Bearer ${key()}` },
  });
  server.child.kill('SIGTERM');
  const { stdout } = await server.ended;
  t.true(stdout.includes('"status":200') && stdout.includes('"status":403'));
  t.false(stdout.includes(key()));
  t.false(stdout.includes('wrong-key'));
});

test.serial('SIGTERM: running requests finish, new ones get 503, then the exit status is 0', async (t) => {
  const { data, env, key } = setUp(t, slow);
  const server = await startServing(t, env);
  // A kept-alive connection with a request that is still being sent when the signal comes.
  const agent = new Agent({ connections: 1, pipelining: 1 });
  t.teardown(() => agent.close());
  const live = () => request(`${server.url}/health/live`, { dispatcher: agent });
  await (await live()).body.text();
  const running = [post(server, key()), post(server, key()), post(server, key())];
  // Also leaves time for the others to get as far on a busy machine.
  await atWork(data);
  await sleep(100);
  const body = Buffer.from('{"size":"auto"}');
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const late = request(`${server.url}/v1.0/cutout`, {
    method: 'POST',
    dispatcher: agent,
    headers: {
      'X-Api-Key': key(),
      'Content-Type': 'application/json',
      'Content-Length': String(body.length),
    },
    body: Readable.from(
      (async function* () {
        yield body.subarray(0, 5);
        await held;
        yield body.subarray(5);
      })(),
    ),
  });
  await sleep(50);
  server.child.kill('SIGTERM');
  await eventually(() => server.stdout().includes('"stopping"'));
  await t.throwsAsync(fetch(`${server.url}/health/live`), undefined, 'new connections are refused');
  release();
  // It was accepted before the signal: it is answered, and the connection is closed with the answer.
  const answer = await late;
  t.is(answer.statusCode, 400);
  t.is(answer.headers['connection'], 'close');
  for (const one of running) {
    const finished = await one;
    t.is(finished.status, 200);
    t.true((await finished.arrayBuffer()).byteLength > 100);
  }
  t.is((await server.ended).code, 0);
  const stores = await openStores({ dataDir: data, billing: standardBilling });
  t.is(await stores.ledger.openReservations(), 0);
  await stores.close();
});

test.serial('when the grace period ends, the remaining requests are cut off and not charged', async (t) => {
  const { data, env, key } = setUp(t, { convolutions: 100 });
  const server = await startServing(t, { ...env, CUTOUT_STOP_TIMEOUT: '0' });
  const cut = post(server, key());
  cut.catch(() => {});
  await atWork(data);
  server.child.kill('SIGTERM');
  await t.throwsAsync(cut);
  t.is((await server.ended).code, 0);
  const stores = await openStores({ dataDir: data, billing: standardBilling });
  t.is(await stores.ledger.openReservations(), 0);
  t.is((await stores.ledger.balance('local')).credits, credits(100_000));
  await stores.close();
});

test.serial('a second signal ends the process at once', async (t) => {
  const { data, env, key } = setUp(t, { convolutions: 100 });
  const server = await startServing(t, env);
  post(server, key()).catch(() => {});
  await atWork(data);
  server.child.kill('SIGTERM');
  await eventually(() => server.stdout().includes('"stopping"'));
  server.child.kill('SIGTERM');
  t.is((await server.ended).code, 1);
});

test.serial('a client that disconnects cancels its work', async (t) => {
  const { data, env, key } = setUp(t, { convolutions: 100 });
  const server = await startServing(t, env);
  const controller = new AbortController();
  const gone = fetch(`${server.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': key() },
    body: form({ image_file: await image() }),
    signal: controller.signal,
  });
  gone.catch(() => {});
  await atWork(data);
  controller.abort();
  await eventually(() => requests(server).length === 1);
  t.like(JSON.parse(requests(server)[0] ?? ''), { status: 499, error: 'client_closed' });
});

const failures: Record<string, (t: ExecutionContext) => Promise<[Record<string, string>, RegExp]>> = {
  'an unknown setting': async () => [{ CUTOUT_PROT: '1' }, /CUTOUT_PROT/],
  'a bad value': async () => [{ CUTOUT_PORT: 'x' }, /CUTOUT_PORT/],
  'a port in use': async (t) => {
    const other = createServer().listen(0, '127.0.0.1');
    t.teardown(() => other.close());
    await once(other, 'listening');
    return [{ CUTOUT_PORT: String((other.address() as AddressInfo).port) }, /CUTOUT_PORT/];
  },
  'an address of another machine': async () => [{ CUTOUT_HOST: '203.0.113.9' }, /CUTOUT_HOST/],
  'a network that is not there': async (t) => [
    { CUTOUT_MODELS_DIR: temporaryFolder(t) },
    /cutout models pull/,
  ],
  'a network that does not exist': async () => [{ CUTOUT_MODEL: 'nonsense' }, /nonsense/],
  'a second network that is not there': async () => [
    { CUTOUT_SECOND_MODEL: 'silueta' },
    /silueta is not in .*cutout models pull silueta/,
  ],
  'a second network that does not exist': async () => [{ CUTOUT_SECOND_MODEL: 'nonsense' }, /nonsense/],
  'a second network that is the first one': async () => [
    { CUTOUT_SECOND_MODEL: 'u2netp' },
    /CUTOUT_SECOND_MODEL is u2netp, which CUTOUT_MODEL is already/,
  ],
  'a network file that was changed': async (t) => {
    const folder = modelsFolder(temporaryFolder(t));
    const file = path.join(folder, 'u2netp', 'prepared.onnx');
    const bytes = readFileSync(file);
    bytes[bytes.length - 40] = (bytes[bytes.length - 40] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    return [{ CUTOUT_MODELS_DIR: folder }, /damaged/];
  },
  'a runtime library that is not there': async () => [
    { CUTOUT_RUNTIME: '/nowhere/libonnxruntime.so' },
    /\/nowhere\/libonnxruntime\.so/,
  ],
  'a runtime library that is none': async (t) => {
    const file = path.join(temporaryFolder(t), 'libonnxruntime.so.1');
    writeFileSync(file, 'not a library');
    return [{ CUTOUT_RUNTIME: file }, /libonnxruntime\.so\.1/];
  },
  'a Redis that is not there': async () => [
    { CUTOUT_REDIS_URL: 'redis://:a-secret-word@localhost:1/2' },
    /^(?!.*a-secret-word).*Redis at localhost:1 that cannot be used: .*ECONNREFUSED/,
  ],
  'a data folder that is a file': async (t) => {
    const file = path.join(temporaryFolder(t), 'data');
    writeFileSync(file, '');
    return [{ CUTOUT_DATA_DIR: file }, /data/];
  },
};
if (!existsSync('/dev/nvidia0'))
  failures['a GPU that is not there'] = async () => [{ CUTOUT_DEVICE: 'cuda' }, /cuda/i];

for (const [what, prepare] of Object.entries(failures)) {
  test.serial(`start-up error: ${what}`, async (t) => {
    const { env } = setUp(t);
    const [changes, named] = await prepare(t);
    // Without subject types, whose absence would be another line if the network opens before the error occurs.
    const off = { CUTOUT_PORT: '0', CUTOUT_SUBJECT_TYPES: 'off' };
    const { code, stderr } = await cli(t, ['serve', '--no-pull'], { ...off, ...env, ...changes });
    t.is(code, 1);
    const said = stderr.split('\n').filter((line) => line !== '');
    t.is(said.length, 1, stderr);
    t.regex(said[0] ?? '', named);
    t.regex(said[0] ?? '', /^cutout: ./);
  });
}

test.serial('a second server on the same data folder is refused', async (t) => {
  const { env } = setUp(t);
  await startServing(t, env);
  const { code, stderr } = await cli(t, ['serve', '--no-pull'], { CUTOUT_PORT: '0', ...env });
  t.is(code, 1);
  t.is(stderr.trim().split('\n').length, 1, stderr);
});

test.serial(
  'CUTOUT_IDLE_UNLOAD unloads the network; readiness stays, and concurrent requests share one load',
  async (t) => {
    const { env, key } = setUp(t);
    const server = await startServing(t, { ...env, CUTOUT_IDLE_UNLOAD: '1', CUTOUT_KEEP_SECONDS: '0' });
    const said = (text: string) => server.stdout().split(`"${text}"`).length - 1;
    t.is((await post(server, key())).status, 200);
    await eventually(() => said('network unloaded') === 1);
    t.is((await fetch(`${server.url}/health/ready`)).status, 200);
    const answers = await Promise.all([1, 2, 3, 4].map(() => post(server, key())));
    for (const answer of answers) t.is(answer.status, 200);
    t.is(said('network loaded'), 1);
    // It also stops correctly while unloaded.
    await eventually(() => said('network unloaded') === 2);
    server.child.kill('SIGTERM');
    t.is((await server.ended).code, 0);
  },
);
