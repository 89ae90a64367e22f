import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import { cli, modelsFolder, type Serving, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { eventually, form } from '../fixtures/service.ts';

/** Seconds of grace. */
const grace = 6;

/** The image that takes forever; others are as usual. */
const endless = { width: 61, height: 47 };

/**
 * Stands for a library that never returns: a job for that image holds its thread, uninterruptibly, by opening a pipe that
 * nobody writes to.
 */
const hangs = `
import { appendFileSync, open } from 'node:fs';
const { default: sharp } = await import(process.env.TEST_SHARP);
const { toBuffer } = sharp.prototype;
sharp.prototype.toBuffer = function (...args) {
  if (this.options.input.limitInputPixels !== ${endless.width * endless.height}) return toBuffer.apply(this, args);
  appendFileSync(process.env.TEST_PIPE + '.jobs', '.');
  return new Promise((_, reject) => open(process.env.TEST_PIPE, 'r', reject));
};
`;

interface Running {
  readonly server: Serving;
  readonly data: string;
  readonly env: Readonly<Record<string, string>>;
  /** Of the local account, and of another one. */
  readonly keys: readonly [string, string];
}

/** A server with three threads for pixels. */
async function start(t: ExecutionContext, settings: Readonly<Record<string, string>>): Promise<Running> {
  const data = temporaryFolder(t);
  const [pipe, preload] = [path.join(data, 'pipe'), path.join(data, 'hangs.mjs')];
  execFileSync('mkfifo', [pipe]);
  writeFileSync(preload, hangs);
  const env = {
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')),
    CUTOUT_WORKERS: '1',
    CUTOUT_STOP_TIMEOUT: String(grace),
    ...settings,
  };
  const preloading = {
    NODE_OPTIONS: `--import=${pathToFileURL(preload).href}`,
    TEST_PIPE: pipe,
    TEST_SHARP: import.meta.resolve('sharp'),
  };
  const created = await cli(t, ['accounts', 'create', 'Ada', '--credits', '100'], env);
  const other = /key\s+(cutout_\w+)/.exec(created.stdout.toString())?.[1] ?? '';
  const server = await startServing(t, { ...env, ...preloading });
  return { server, data, env, keys: [readFileSync(path.join(data, 'local-key'), 'utf8').trim(), other] };
}

let seed = 1;
const post = async ({ server }: Running, key: string, size: { width: number; height: number }) =>
  fetch(`${server.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': key },
    body: form({ image_file: Buffer.concat([await scene(size), Buffer.from([seed++])]), size: 'full' }),
  });
const usual = { width: 300, height: 200 };

/** Jobs that hold a thread. */
const hanging = (data: string): number => {
  const jobs = path.join(data, 'pipe.jobs');
  return existsSync(jobs) ? readFileSync(jobs).length : 0;
};

const balances = async (data: string) => {
  const stores = await openStores({ dataDir: data, billing: standardBilling });
  const { credits: local } = await stores.ledger.balance('local');
  const open = await stores.ledger.openReservations();
  const faults = await stores.ledger.verify();
  await stores.close();
  return { local: local as number, open, faults };
};

test.serial('SIGTERM ends the process although a library does not; others work meanwhile', async (t) => {
  t.timeout(180_000);
  const running = await start(t, {});
  const { server, data, keys } = running;
  const [own, other] = keys;
  const stuck = post(running, own, endless).catch(() => undefined);
  await eventually(() => hanging(data) === 1);
  t.is((await post(running, other, usual)).status, 200);
  // From the time on that it may take, its account gets no further image, and has paid its rate. Before, a loaded machine may
  // count its jobs as long ones, of which one runs at a time beside another account's.
  let refused = await post(running, own, usual);
  while (refused.status === 200 || refused.status === 503) {
    await sleep(500);
    refused = await post(running, own, usual);
  }
  t.is(refused.status, 429);
  t.regex(await refused.text(), /An earlier image of this account takes too long/);
  t.true(Number(refused.headers.get('X-RateLimit-Remaining')) < 500);
  t.is((await post(running, other, usual)).status, 200);
  t.true(server.stdout().includes('"overdue":1,"threads":3,"msg":"an image job takes too long"'));
  t.is((await fetch(`${server.url}/health/ready`)).status, 200);

  const from = performance.now();
  server.child.kill('SIGTERM');
  const { code, stdout } = await server.ended;
  t.true(performance.now() - from < grace * 1000);
  t.is(code, 0);
  t.true(stdout.toString().includes('"inTime":false,"msg":"stopped"'));
  await stuck;
});

test.serial(
  'with most threads lost, others get 503 in time, and the process ends to be started again',
  async (t) => {
    t.timeout(180_000);
    const running = await start(t, { CUTOUT_QUEUE_SECONDS: '1', CUTOUT_DRAIN_SECONDS: '2' });
    const { server, data, env, keys } = running;
    const [own, other] = keys;
    const stuck = Array.from({ length: 3 }, () => post(running, own, endless).catch(() => undefined));
    await eventually(() => hanging(data) === 3);
    const answer = await post(running, other, usual);
    t.is(answer.status, 503);
    t.true(Number(answer.headers.get('Retry-After')) > 0);
    await eventually(async () => (await fetch(`${server.url}/health/ready`)).status === 503);
    const { code, stdout } = await server.ended;
    t.is(code, 75);
    t.regex(stdout.toString(), /"msg":"image jobs do not end"/);
    await Promise.all(stuck);

    // Nothing is charged for what was lost.
    await startServing(t, env);
    await eventually(async () => (await balances(data)).open === 0);
    t.deepEqual(await balances(data), { local: credits(100_000) as number, open: 0, faults: [] });
  },
);
