import { existsSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import {
  type CliEnvironment,
  cli,
  modelsFolder,
  type Serving,
  startServing,
  temporaryFolder,
} from '../fixtures/cli.ts';
import { listenHere } from '../fixtures/imageHost.ts';
import { scene } from '../fixtures/images.ts';
import { processState } from '../fixtures/process.ts';
import { noRedis, ownDatabase, redisIsHere, removeSharedRedis } from '../fixtures/redis.ts';
import { eventually } from '../fixtures/service.ts';

const token = 'metrics-of-this-test';
const almostTooLarge = 21.9e6;

const library = '/usr/lib/x86_64-linux-gnu/libjemalloc.so.2';

function environment(t: ExecutionContext): { data: string; env: CliEnvironment } {
  const data = temporaryFolder(t);
  const env = {
    ...(existsSync(library) ? { LD_PRELOAD: library } : { MALLOC_ARENA_MAX: '2' }),
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')),
    CUTOUT_METRICS_TOKEN: token,
  };
  return { data, env };
}

const keyOf = (data: string) => readFileSync(path.join(data, 'local-key'), 'utf8').trim();

async function anotherKey(t: ExecutionContext, env: CliEnvironment): Promise<string> {
  const { stdout } = await cli(t, ['accounts', 'create', 'other'], env);
  return /^key\s+(\S+)$/m.exec(stdout.toString())?.[1] ?? '';
}

const postTo = ({ url }: Serving, key: string, fields: Readonly<Record<string, string | Buffer>>) => {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields))
    body.append(name, typeof value === 'string' ? value : new Blob([new Uint8Array(value)]));
  return fetch(`${url}/v1.0/cutout`, { method: 'POST', headers: { 'X-Api-Key': key }, body });
};

async function metric({ url }: Serving, name: string): Promise<number> {
  const answer = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${token}` } });
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await answer.text())?.[1]);
}

/** Polls health until it is stopped; returns the slowest answer in milliseconds. */
function watchHealth({ url }: Serving): () => Promise<number> {
  let over = false;
  let slowest = 0;
  const watching = (async () => {
    while (!over) {
      const started = performance.now();
      const { status } = await fetch(`${url}/health/live`);
      if (status !== 200) throw new Error(`health: ${status}`);
      slowest = Math.max(slowest, performance.now() - started);
      await sleep(20);
    }
  })();
  return async () => {
    over = true;
    await watching;
    return slowest;
  };
}

const count = (answers: readonly Response[]) => {
  const counted: Record<string, number> = {};
  for (const { status } of answers) counted[status] = (counted[status] ?? 0) + 1;
  return counted;
};

test.serial(
  '100 downloads of 21.9 MB that stall or drip end in refusals, and memory stays bounded',
  async (t) => {
    t.timeout(240_000);
    const { data, env } = environment(t);
    const sent = Buffer.alloc(almostTooLarge);
    const open = new Set<ServerResponse>();
    const host = await listenHere(t, (req, res) => {
      open.add(res);
      res.on('close', () => open.delete(res));
      // Half of them do not announce a length.
      if (req.url?.endsWith('0')) res.setHeader('Content-Length', sent.length + 1000);
      res.write(sent);
      const drip = setInterval(() => res.write('x'), 1000);
      res.on('close', () => clearInterval(drip));
    });
    // Only memory is the limit.
    const server = await startServing(t, {
      ...env,
      CUTOUT_MEMORY_LIMIT: '1500M',
      CUTOUT_FETCH_ALLOW: `127.0.0.1:${host.port}`,
      CUTOUT_FETCH_CONCURRENCY: '0',
      CUTOUT_FETCH_ACCOUNT_CONCURRENCY: '0',
      CUTOUT_FETCH_FAILURES: '0',
    });
    const mine = keyOf(data);
    const theirs = await anotherKey(t, env);
    const pid = server.child.pid ?? 0;
    const before = processState(pid).resident;
    const health = watchHealth(server);
    const refused: Response[] = [];
    const attack = Array.from({ length: 100 }, async (_, number) => {
      const answer = await postTo(server, mine, {
        image_url: `http://127.0.0.1:${host.port}/${number % 2}`,
      });
      if (answer.status === 503) refused.push(answer);
      return answer;
    });
    // Some hold everything that the account may have; the others were refused at once.
    await eventually(
      async () => refused.length > 0 && (await metric(server, 'cutout_memory_held_bytes')) > 200e6,
      60_000,
    );
    t.true(refused.every(({ headers }) => Number(headers.get('retry-after')) >= 1));
    const served = await postTo(server, theirs, { image_file: await scene() });
    t.is(served.status, 200);
    // The rest is given up when its time limit is reached.
    const answers = await Promise.all(attack);
    const slowest = await health();
    const { peak } = processState(pid);
    t.log(
      `${JSON.stringify(count(answers))}, ${before.toFixed(0)} MB before, peak ${peak.toFixed(0)} MB, slowest look at health ${slowest.toFixed(0)} ms`,
    );
    t.deepEqual(Object.keys(count(answers)), ['400', '503']);
    // Three quarters of what bodies and downloads may take, half of the room; the rest is for garbage not collected yet.
    const room = (await metric(server, 'cutout_memory_room_bytes')) / 1e6;
    t.true(peak < before + (3 / 8) * room + 200, `${peak} MB, room ${room} MB`);
    t.true(slowest < 10_000, `${slowest} ms`);
    await eventually(async () => (await metric(server, 'cutout_memory_held_bytes')) === 0);
    t.is(await metric(server, 'cutout_downloads_running'), 0);
    t.is(await metric(server, 'cutout_memory_working_bytes'), 0);
    await eventually(() => open.size === 0);
    t.is((await postTo(server, mine, { image_file: await scene() })).status, 200);
  },
);

test.serial(
  'by default an account has 16 concurrent downloads, and none for a while if all of them fail',
  async (t) => {
    t.timeout(120_000);
    const { data, env } = environment(t);
    const open = new Set<ServerResponse>();
    let asked = 0;
    const host = await listenHere(t, (_req, res) => {
      asked += 1;
      open.add(res);
      res.on('close', () => open.delete(res));
      res.flushHeaders();
    });
    const server = await startServing(t, {
      ...env,
      CUTOUT_FETCH_ALLOW: `127.0.0.1:${host.port}`,
      CUTOUT_FETCH_FAILURES: '16',
    });
    const key = keyOf(data);
    const image_url = `http://127.0.0.1:${host.port}/`;
    let refused = 0;
    const attack = Array.from({ length: 100 }, async () => {
      const answer = await postTo(server, key, { image_url });
      if (answer.status === 429) refused += 1;
      return answer;
    });
    // All requests have arrived: a late one would take the place of a download that the host closed.
    await eventually(() => open.size === 16 && refused === 84);
    t.is((await postTo(server, key, { image_file: await scene() })).status, 200);
    // The host closes all of them.
    for (const res of open) res.destroy();
    const answers = await Promise.all(attack);
    t.deepEqual(count(answers), { 400: 16, 429: 84 });
    t.is(asked, 16);
    const braked = await postTo(server, key, { image_url });
    t.is(braked.status, 429);
    t.true(Number(braked.headers.get('retry-after')) > 2);
    t.is(asked, 16);
    t.is(await metric(server, 'cutout_downloads_running'), 0);
  },
);

test.serial('configured ports apply, to a listed host and to redirects; off means off', async (t) => {
  t.timeout(120_000);
  const { data, env } = environment(t);
  const image = await scene();
  let inside = 0;
  const hidden = await listenHere(t, (_req, res) => {
    inside += 1;
    res.end(image);
  });
  const host = await listenHere(t, (req, res) => {
    if (req.url === '/image') res.end(image);
    else res.writeHead(302, { Location: `http://127.0.0.1:${hidden.port}/` }).end();
  });
  const settings = { ...env, CUTOUT_FETCH_ALLOW: '127.0.0.1' };
  const server = await startServing(t, { ...settings, CUTOUT_FETCH_PORTS: String(host.port) });
  const key = keyOf(data);
  const base = `http://127.0.0.1:${host.port}`;
  t.is((await postTo(server, key, { image_url: `${base}/image` })).status, 200);
  const details = new Set<string>();
  for (const image_url of [
    `${base}/redirect`,
    `http://127.0.0.1:${hidden.port}/`,
    `http://localhost:${host.port}/`,
    `http://[::1]:${host.port}/`,
    'http://168.63.129.16/',
    'http://nowhere.invalid/',
  ]) {
    const answer = await postTo(server, key, { image_url });
    t.is(answer.status, 400, image_url);
    const { errors } = (await answer.json()) as { errors: { code: string; detail: string }[] };
    t.is(errors[0]?.code, 'failed_image_download');
    details.add(errors[0]?.detail ?? '');
  }
  t.is(details.size, 1, [...details].join(' | '));
  t.is(inside, 0);
  server.child.kill('SIGTERM');
  await server.ended;

  const closed = await startServing(t, { ...settings, CUTOUT_FETCH: 'off' });
  const answer = await postTo(closed, key, { image_url: `${base}/image` });
  t.is(answer.status, 400);
  t.regex(await answer.text(), /invalid_image_url.*does not download images/);
});

const withRedis = redisIsHere ? test.serial : test.serial.skip;
if (!redisIsHere) test.serial('what nodes share of downloads', (t) => t.pass(noRedis));
test.after.always(removeSharedRedis);

withRedis('with Redis, downloads in vain are braked, and what was paid for outlives a node', async (t) => {
  t.timeout(120_000);
  const { data, env } = environment(t);
  const image = await scene();
  let asked = 0;
  const host = await listenHere(t, (req, res) => {
    asked += 1;
    if (req.url === '/image') res.end(image);
    else res.writeHead(404).end();
  });
  const { url } = await ownDatabase();
  const settings = {
    ...env,
    CUTOUT_REDIS_URL: url,
    CUTOUT_FETCH_ALLOW: `127.0.0.1:${host.port}`,
    CUTOUT_FETCH_FAILURES: '2',
    CUTOUT_FREE_PREVIEWS_MONTH: '1',
  };
  const [image_url, missing] = ['image', 'missing'].map((name) => `http://127.0.0.1:${host.port}/${name}`);
  if (!image_url || !missing) throw new Error('no addresses');
  const first = await startServing(t, settings);
  const [mine, theirs] = [keyOf(data), await anotherKey(t, settings)];
  t.is((await postTo(first, theirs, { image_url })).status, 200);
  for (const _ of [1, 2]) t.is((await postTo(first, mine, { image_url: missing })).status, 400);
  t.is((await postTo(first, mine, { image_url })).status, 429);
  first.child.kill('SIGTERM');
  await first.ended;

  const second = await startServing(t, settings);
  const again = await postTo(second, theirs, { image_url });
  t.is(again.status, 200);
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.is((await postTo(second, theirs, { image_url: missing })).status, 402);
  t.is(asked, 4);
});
