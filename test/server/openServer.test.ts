import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { loadConfig } from '../../src/config/readConfig.ts';
import { UserError } from '../../src/errors.ts';
import { Health } from '../../src/ops/health.ts';
import { createLogger } from '../../src/ops/log.ts';
import type { OpenedEngine } from '../../src/server/openEngine.ts';
import { openServer } from '../../src/server/openServer.ts';
import type { Server, StartOptions } from '../../src/server/serverTypes.ts';
import { modelsFolder, temporaryFolder } from '../fixtures/cli.ts';
import { FakeEngine, openedFake } from '../fixtures/fakeEngine.ts';
import { scene } from '../fixtures/images.ts';
import { unless } from '../fixtures/leftOut.ts';
import { noRedis, RedisServer, redisIsHere } from '../fixtures/redis.ts';
import { eventually, form } from '../fixtures/service.ts';

const silent = createLogger('silent', { write: () => {} });

const start = (): StartOptions => ({
  log: { logger: silent, dropped: () => 0, flush: async () => {} },
  health: new Health(),
  pull: false,
  observer: { notice: () => {}, progress: () => {} },
  signal: new AbortController().signal,
});

const configOf = (dataDir: string, env: Record<string, string> = {}) =>
  loadConfig({ CUTOUT_DATA_DIR: dataDir, CUTOUT_PORT: '0', ...env });

const network = () => openedFake(new FakeEngine(), {});

async function asker(t: ExecutionContext, server: Server) {
  const account = await server.stores.accounts.create('Test');
  const { key } = await server.stores.accounts.createKey(account.id);
  const url = `http://127.0.0.1:${server.http.address.port}`;
  const image = await scene({ width: 64, height: 48 });
  t.teardown(() => server.close(0));
  return {
    live: async () => (await fetch(`${url}/health/live`)).status,
    ready: async () => (await fetch(`${url}/health/ready`)).status,
    cutout: async () => {
      const body = form({ image_file: image, size: 'preview' });
      return (await fetch(`${url}/v1.0/cutout`, { method: 'POST', headers: { 'X-Api-Key': key }, body }))
        .status;
    },
  };
}

test('the port is open while the network loads; images are answered with 503 until it is loaded', async (t) => {
  let loaded = (_: OpenedEngine) => {};
  const engine = new Promise<OpenedEngine>((resolve) => {
    loaded = resolve;
  });
  const server = await openServer(configOf(temporaryFolder(t)), start(), { engine });
  const ask = await asker(t, server);
  t.deepEqual([await ask.ready(), await ask.cutout()], [503, 503]);
  loaded(network());
  const opened = await server.ready();
  t.is(opened.network.name, 'fake');
  t.deepEqual([await ask.ready(), await ask.cutout()], [200, 200]);
});

const noWebgpu =
  process.platform === 'linux' && process.arch === 'x64' ? undefined : 'without WebGPU nothing is measured';

unless(noWebgpu)('while devices are measured health says so; then the fastest one is opened', async (t) => {
  const place = temporaryFolder(t);
  const env = { CUTOUT_MODEL: 'u2netp', CUTOUT_MODELS_DIR: modelsFolder(path.join(place, 'models')) };
  // No driver, so that WebGPU fails: here, and in the processes that measure.
  const { VK_DRIVER_FILES: before } = process.env;
  const drivers = path.join(place, 'nothing.json');
  process.env['VK_DRIVER_FILES'] = drivers;
  t.teardown(() => {
    if (before === undefined) delete process.env['VK_DRIVER_FILES'];
    else process.env['VK_DRIVER_FILES'] = before;
  });
  const auto = { CUTOUT_DEVICE: 'auto', CUTOUT_SUBJECT_TYPES: 'off', VK_DRIVER_FILES: drivers };
  const config = configOf(place, { ...env, ...auto });
  const notices: string[] = [];
  const observer = { notice: (text: string) => void notices.push(text), progress: () => {} };
  const server = await openServer(config, { ...start(), observer });
  t.teardown(() => server.close(0));
  const said = async () => {
    const answer = await fetch(`http://127.0.0.1:${server.http.address.port}/health/ready`);
    return `${answer.status} ${await answer.text()}`;
  };
  let text = '';
  await eventually(async () => {
    text = await said();
    return text.includes('opening');
  });
  t.regex(text, /^503 .*is starting: opening u2netp to measure cpu, device 1 of 2, \d+ s so far\./);
  const { device } = await server.ready();
  t.is(device, 'cpu', notices.join('\n'));
  t.regex(notices.join('\n'), /^The device webgpu is left out: WebGPU was asked for and cannot be used/m);
  t.regex(await said(), /^200 /);
});

test('while an unloaded network cannot be loaded again, requests get 503 and the server is not ready', async (t) => {
  const state = { unloaded: false, broken: true };
  const fake = network();
  const engine = {
    ...fake,
    engine: {
      ...fake.engine,
      unload: async () => {
        state.unloaded = true;
      },
    },
    reload: async () => {
      if (state.broken) throw new Error('gone from the disk');
    },
  };
  const config = configOf(temporaryFolder(t), { CUTOUT_IDLE_UNLOAD: '1' });
  const server = await openServer(config, start(), { engine });
  const ask = await asker(t, server);
  await server.ready();
  await eventually(() => state.unloaded);
  t.is(await ask.ready(), 200, 'it can be loaded as far as is known');
  t.deepEqual([await ask.cutout(), await ask.ready()], [503, 503]);
  state.broken = false;
  t.deepEqual([await ask.cutout(), await ask.ready()], [200, 200]);
});

test('the server is ready while one of its GPUs works, and says how many do', async (t) => {
  const lost = new Set<number>();
  const fake = network();
  const device = (id: number) => ({
    id,
    losses: lost.has(id) ? 1 : 0,
    batches: [0, 1],
    waits: [],
    waitedMs: 0,
    ...(lost.has(id) && { lost: 'The GPU has stopped working.' }),
  });
  const engine = {
    ...fake,
    engine: { ...fake.engine, stats: () => ({ ...fake.engine.stats(), devices: [device(0), device(1)] }) },
  };
  const server = await openServer(configOf(temporaryFolder(t)), start(), { engine });
  const ask = await asker(t, server);
  await server.ready();
  const ready = async () => {
    const answer = await fetch(`http://127.0.0.1:${server.http.address.port}/health/ready`);
    return [answer.status, JSON.stringify(await answer.json())] as const;
  };
  t.deepEqual(await ready(), [200, '{"status":"ready","devices":{"ready":2,"lost":0}}']);
  lost.add(1);
  t.deepEqual(await ready(), [200, '{"status":"ready","devices":{"ready":1,"lost":1}}']);
  lost.add(0);
  const [status, body] = await ready();
  t.is(status, 503);
  t.regex(body, /The GPUs of the service do not answer/);
  lost.delete(0);
  t.is(await ask.ready(), 200);
});

test('if the network cannot be loaded, the server is never ready and everything is closed', async (t) => {
  const dataDir = temporaryFolder(t);
  const engine = Promise.reject(new UserError('no network'));
  const server = await openServer(configOf(dataDir), start(), { engine });
  const ask = await asker(t, server);
  await t.throwsAsync(server.ready(), { message: 'no network' });
  t.deepEqual([await ask.ready(), await ask.cutout()], [503, 503]);
  t.true(await server.close(10_000));
  // A folder has one server at a time.
  const next = await openServer(configOf(dataDir), start(), { engine: network() });
  t.true(await next.close(10_000));
});

test('too little memory for any request is a start-up error', async (t) => {
  const config = configOf(temporaryFolder(t), { CUTOUT_MEMORY_LIMIT: '100M' });
  const server = await openServer(config, start(), { engine: network() });
  t.teardown(() => server.close(0));
  await t.throwsAsync(server.ready(), { instanceOf: UserError, message: /not enough memory/ });
});

const states: readonly [
  string,
  leave: (redis: RedisServer) => unknown,
  back: (redis: RedisServer) => unknown,
][] = [
  ['is gone', (redis) => redis.kill(), (redis) => redis.start()],
  ['hangs', (redis) => redis.pause(), (redis) => redis.resume()],
  [
    'became a read-only replica',
    (redis) => redis.ask('REPLICAOF', '127.0.0.1', '1'),
    (redis) => redis.ask('REPLICAOF', 'NO', 'ONE'),
  ],
  [
    'refuses writes because a snapshot failed',
    async (redis) => {
      const [, folder] = (await redis.ask('CONFIG', 'GET', 'dir')) as [string, string];
      // A folder in the place of the snapshot's file.
      mkdirSync(path.join(folder, 'dump.rdb'));
      await redis.ask('CONFIG', 'SET', 'save', '3600 1');
      await redis.ask('BGSAVE');
      await eventually(async () =>
        String(await redis.ask('INFO', 'persistence')).includes('rdb_last_bgsave_status:err'),
      );
    },
    (redis) => redis.ask('CONFIG', 'SET', 'save', ''),
  ],
  [
    'refuses writes because it has no replica',
    (redis) => redis.ask('CONFIG', 'SET', 'min-replicas-to-write', '1'),
    (redis) => redis.ask('CONFIG', 'SET', 'min-replicas-to-write', '0'),
  ],
];

async function withRedis(t: ExecutionContext) {
  const redis = await RedisServer.start();
  t.teardown(() => redis.remove());
  const config = configOf(temporaryFolder(t), { CUTOUT_REDIS_URL: redis.url });
  const server = await openServer(config, start(), { engine: network() });
  const ask = await asker(t, server);
  await server.ready();
  t.deepEqual([await ask.ready(), await ask.cutout()], [200, 200]);
  return { redis, ask };
}

for (const [state, leave, comeBack] of states)
  unless(redisIsHere ? undefined : noRedis)(
    `a server whose Redis ${state} is alive and not ready, until Redis is back`,
    async (t) => {
      const { redis, ask } = await withRedis(t);
      await leave(redis);
      await eventually(async () => (await ask.ready()) === 503);
      t.is(await ask.cutout(), 503);
      t.is(await ask.live(), 200);
      // A reconnection does not make it ready for a moment.
      for (const until = performance.now() + 5000; performance.now() < until; await sleep(10))
        if ((await ask.ready()) !== 503) return t.fail('ready in between');
      await comeBack(redis);
      await eventually(async () => (await ask.ready()) === 200);
      t.is(await ask.cutout(), 200);
    },
  );

unless(redisIsHere ? undefined : noRedis)(
  'a server whose Redis is full answers images and stays ready',
  async (t) => {
    const { redis, ask } = await withRedis(t);
    await redis.ask('CONFIG', 'SET', 'maxmemory', '1');
    // Several checks of the connection.
    for (let second = 0; second < 4; second++, await sleep(1000))
      t.deepEqual([await ask.ready(), await ask.cutout()], [200, 200]);
  },
);

test('a port in use is a start-up error, and nothing stays open', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((listening) => other.once('listening', listening));
  t.teardown(() => other.close());
  const address = other.address();
  const port = typeof address === 'object' ? String(address?.port) : '';
  const dataDir = temporaryFolder(t);
  const opening = openServer(configOf(dataDir, { CUTOUT_PORT: port }), start(), { engine: network() });
  await t.throwsAsync(opening, { instanceOf: UserError, message: /listens on/ });
  const next = await openServer(configOf(dataDir), start(), { engine: network() });
  t.true(await next.close(10_000));
});
