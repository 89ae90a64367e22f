import { chmodSync, mkdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { freePort } from '../../bench/lib/freePort.ts';
import { standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import { checkDisk, checkLimits } from '../../src/cli/doctor/resources.ts';
import { checkExposure, checkServer } from '../../src/cli/doctor/server.ts';
import { checkDatabase, checkRedis, compareClocks } from '../../src/cli/doctor/stores.ts';
import { type Environment, loadConfig } from '../../src/config/readConfig.ts';
import { Health } from '../../src/ops/health.ts';
import { openDatabase } from '../../src/store/open.ts';
import { temporaryFolder } from '../fixtures/cli.ts';
import { sayLeftOut, unless } from '../fixtures/leftOut.ts';
import { postgresMissing, startPostgres } from '../fixtures/postgres.ts';
import { noRedis, RedisServer, redisIsHere } from '../fixtures/redis.ts';
import { startService } from '../fixtures/service.ts';

const states = (findings: readonly Finding[]) => findings.map(({ about, state }) => `${about} ${state}`);
const config = (t: ExecutionContext, env: Environment = {}) =>
  loadConfig({ CUTOUT_DATA_DIR: temporaryFolder(t), ...env });

async function withBooks(t: ExecutionContext) {
  const settings = config(t).store;
  const { dataDir } = settings;
  const stores = await openStores({ dataDir, billing: standardBilling });
  for (let n = 0; n < 50; n++) await stores.accounts.create(`Account ${n}`);
  await stores.close();
  return { settings, file: path.join(dataDir, 'books.db') };
}

test('a missing database is no problem, and is not created', async (t) => {
  const settings = config(t).store;
  t.deepEqual(states(await checkDatabase(settings)), ['ledger ok']);
  t.throws(() => statSync(path.join(settings.dataDir, 'books.db')));
});

test('a database of this version is correct; others may not read it', async (t) => {
  const { settings, file } = await withBooks(t);
  t.deepEqual(states(await checkDatabase(settings)), ['ledger ok']);
  chmodSync(file, 0o644);
  const [, readable] = await checkDatabase(settings);
  // Opening it may correct the mode.
  if (readable) t.like(readable, { state: 'note' });
});

test('a newer, a damaged and an unrelated database are distinguished', async (t) => {
  const newer = await withBooks(t);
  const database = await openDatabase({ dataDir: newer.settings.dataDir });
  await database.run(
    "INSERT INTO migration (version, name, checksum, applied_at) VALUES (99, 'later', 'x', 0)",
  );
  await database.close();
  const [schema] = await checkDatabase(newer.settings);
  t.like(schema, { state: 'problem' });
  t.regex(schema?.todo ?? '', /newer version/);

  const damaged = await withBooks(t);
  const { size } = statSync(damaged.file);
  truncateSync(damaged.file, Math.floor(size / 2 / 4096) * 4096);
  t.true((await checkDatabase(damaged.settings)).some(({ state }) => state === 'problem'));

  const none = await withBooks(t);
  writeFileSync(none.file, 'This is no database, and long enough to be read as one. '.repeat(100));
  t.true((await checkDatabase(none.settings)).some(({ state }) => state === 'problem'));
});

test('a database that does not answer is a problem whose text has no password', async (t) => {
  const { store: settings } = config(t, {
    CUTOUT_DATABASE_URL: `postgres://cutout:very-secret@127.0.0.1:${await freePort()}/cutout`,
  });
  const [found] = await checkDatabase(settings);
  t.like(found, { about: 'ledger', state: 'problem' });
  t.regex(found?.todo ?? '', /CUTOUT_DATABASE_URL/);
  t.false(JSON.stringify(found).includes('very-secret'));
});

unless(postgresMissing)('PostgreSQL: empty, and in step', async (t) => {
  const server = await startPostgres();
  t.teardown(() => server.remove());
  const { store: settings } = config(t, { CUTOUT_DATABASE_URL: await server.createDatabase() });
  t.deepEqual(states(await checkDatabase(settings)), ['ledger ok', 'clock ok']);
});

unless(redisIsHere ? undefined : noRedis)(
  'Redis: there, in step, warned of where it forgets; or not there',
  async (t) => {
    const server = await RedisServer.start();
    t.teardown(() => server.remove());
    t.deepEqual(states(await checkRedis(server.url)), ['redis ok', 'clock ok']);
    await server.ask('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    t.deepEqual(states(await checkRedis(server.url)), ['redis ok', 'redis note', 'clock ok']);
    const [gone] = await checkRedis(`redis://:very-secret@127.0.0.1:${await freePort()}`);
    t.like(gone, { state: 'problem' });
    t.false(JSON.stringify(gone).includes('very-secret'));
  },
);

test('the difference of clocks is reported', async (t) => {
  const at = (off: number) => compareClocks('PostgreSQL', async () => Date.now() + off);
  t.is((await at(0)).state, 'ok');
  t.is((await at(3000)).state, 'note');
  const found = await at(-60_000);
  t.is(found.state, 'problem');
  t.regex(found.said, /60\.0 s ahead of that of PostgreSQL/);
});

test('a folder without write permission is a problem, a missing one is not', (t) => {
  const folder = temporaryFolder(t);
  const at = (place: string) =>
    checkDisk(loadConfig({ CUTOUT_DATA_DIR: place, CUTOUT_MODELS_DIR: path.join(place, 'models') }));
  t.true(at(path.join(folder, 'not', 'yet')).every(({ state }) => state !== 'problem'));
  mkdirSync(path.join(folder, 'file'), { mode: 0o555 });
  if (process.getuid?.() === 0) return sayLeftOut(t, 'this user is root, who may write everywhere');
  t.true(at(path.join(folder, 'file')).every(({ state }) => state === 'problem'));
});

test('limits that are too low are reported with their remedy', (t) => {
  const findings = (env: Environment, folders: string[] = []) => checkLimits(config(t, env), folders);
  const low = findings({ CUTOUT_MEMORY_LIMIT: '1G', CUTOUT_THREADS: '256' });
  t.true(states(low).includes('memory note'));
  t.true(states(low).includes('limits note'));
  for (const { state, todo } of low) t.is(todo === undefined, state === 'ok');
  const high = findings({ CUTOUT_MEMORY_LIMIT: '8G' });
  t.is(high.find(({ about }) => about === 'memory')?.state, 'ok');
  const folder = temporaryFolder(t);
  writeFileSync(path.join(folder, 'libjemalloc.so.2'), '');
  t.false(findings({ CUTOUT_MEMORY_LIMIT: '8G' }, [folder]).some(({ todo }) => todo?.includes('jemalloc')));
});

test('a running server is reported: ready, not ready, or another program', async (t) => {
  const at = (port: number | string) => checkServer(config(t, { CUTOUT_PORT: String(port) }).http);
  const health = new Health();
  const service = await startService(t, { health });
  const { port } = new URL(service.url);
  const [starting] = await at(port);
  t.like(starting, { state: 'note' });
  t.regex(starting?.said ?? '', /starting/);
  health.ready();
  t.deepEqual(states(await at(port)), ['server ok']);

  const other = createServer((_, res) => res.end('hello')).listen(0, '127.0.0.1');
  t.teardown(() => other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  t.deepEqual(states(await at((other.address() as AddressInfo).port)), ['server problem']);
  t.deepEqual(states(await at(await freePort())), ['server ok'], 'none runs');
});

test('settings that expose more than intended are reported', (t) => {
  const count = (env: Environment) => checkExposure(config(t, env)).length;
  t.is(count({}), 0);
  t.is(count({ CUTOUT_METRICS_PORT: '9464' }), 0);
  t.is(count({ CUTOUT_METRICS_PORT: '9464', CUTOUT_METRICS_HOST: '0.0.0.0' }), 1);
  const token = { CUTOUT_METRICS_TOKEN: 'metrics-token-of-this-test' };
  t.is(count({ CUTOUT_METRICS_PORT: '9464', CUTOUT_METRICS_HOST: '0.0.0.0', ...token }), 0);
  t.is(count({ CUTOUT_PUBLIC_URL: 'http://cutout.example.com' }), 1);
  t.is(count({ CUTOUT_PUBLIC_URL: 'https://cutout.example.com' }), 1);
  t.is(count({ CUTOUT_PUBLIC_URL: 'https://cutout.example.com', CUTOUT_PROXIES: '1' }), 0);
  t.is(count({ CUTOUT_HOST: '0.0.0.0' }), 1);
});
