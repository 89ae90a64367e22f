import { createServer } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { loadConfig } from '../../src/config/readConfig.ts';
import { UserError } from '../../src/errors.ts';
import { createHealth } from '../../src/ops/health.ts';
import { createLogger } from '../../src/ops/log.ts';
import type { OpenedEngine } from '../../src/server/openEngine.ts';
import { openServer } from '../../src/server/openServer.ts';
import type { Server, StartOptions } from '../../src/server/serverTypes.ts';
import { temporaryFolder } from '../fixtures/cli.ts';
import { FakeEngine, openedFake } from '../fixtures/fakeEngine.ts';
import { scene } from '../fixtures/images.ts';
import { unless } from '../fixtures/leftOut.ts';
import { noRedis, RedisServer, redisIsHere } from '../fixtures/redis.ts';
import { eventually, form } from '../fixtures/service.ts';

const silent = createLogger('silent', { write: () => {} });

const start = (): StartOptions => ({
  log: { logger: silent, dropped: () => 0, flush: async () => {} },
  health: createHealth(),
  pull: false,
  observer: { notice: () => {}, progress: () => {} },
  signal: new AbortController().signal,
});

const configOf = (dataDir: string, env: Record<string, string> = {}) =>
  loadConfig({ CUTOUT_DATA_DIR: dataDir, CUTOUT_PORT: '0', ...env });

const network = () => openedFake(new FakeEngine(), false);

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

unless(redisIsHere ? undefined : noRedis)(
  'a server that lost its Redis is alive and not ready, until Redis is back',
  async (t) => {
    const redis = await RedisServer.start();
    t.teardown(() => redis.remove());
    const config = configOf(temporaryFolder(t), { CUTOUT_REDIS_URL: redis.url });
    const server = await openServer(config, start(), { engine: network() });
    const ask = await asker(t, server);
    await server.ready();
    t.deepEqual([await ask.ready(), await ask.cutout()], [200, 200]);
    for (const [leave, comeBack] of [
      [() => redis.kill(), () => redis.start()],
      [() => redis.pause(), () => redis.resume()],
    ] as const) {
      await leave();
      await eventually(async () => (await ask.ready()) === 503);
      t.is(await ask.cutout(), 503);
      t.is(await ask.live(), 200);
      await comeBack();
      await eventually(async () => (await ask.ready()) === 200);
      t.is(await ask.cutout(), 200);
    }
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
