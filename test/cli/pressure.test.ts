import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { openClient } from '../../bench/lib/client.ts';
import { openImages } from '../../bench/lib/images.ts';
import { mixed, mixedSender } from '../../bench/lib/mixed.ts';
import { type CliEnvironment, modelsFolder, root, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { long, sayShort } from '../fixtures/long.ts';
import { type ProcessState, processState } from '../fixtures/process.ts';

const models = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');

/** Only memory is the limit. The network has a few kilobytes; in the long mode it is the default one. */
function environment(data: string): CliEnvironment {
  const real = long && existsSync(path.join(models, 'isnet', 'prepared.json'));
  return {
    CUTOUT_DATA_DIR: data,
    ...(real
      ? { CUTOUT_MODEL: 'isnet', CUTOUT_MODELS_DIR: models }
      : { CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')) }),
    CUTOUT_KEEP_SECONDS: '0',
    CUTOUT_RATE_LIMIT: '0',
    CUTOUT_QUEUE_SECONDS: '0',
    CUTOUT_TIMEOUT: '1200',
  };
}

const clientOf = (url: string, data: string) =>
  openClient({ url, key: readFileSync(path.join(data, 'local-key'), 'utf8').trim() });

/** CUTOUT_TEST_CGROUP: folder of a control group with a memory limit, in which the server is started. */
const group = process.env['CUTOUT_TEST_CGROUP'];
const throughGroup = group ? ['sh', '-c', 'echo $$ > "$0"/cgroup.procs && exec "$@"', group] : [];

test.serial(
  'uploads far beyond the memory limit end in 503s, and memory stays below the limit',
  async (t) => {
    t.timeout(1_800_000);
    // 50 of the large ones fit if they are processed one after the other.
    const [count, megapixels, limit] = long ? [80, 50, 4096] : [16, 8, 450];
    sayShort(t, '80 uploads of 50 MP at a limit of 4 GB');
    const data = temporaryFolder(t);
    // In a control group the server detects the limit.
    const limited: CliEnvironment = group ? {} : { CUTOUT_MEMORY_LIMIT: `${limit}M` };
    const server = await startServing(t, { ...environment(data), ...limited }, throughGroup);
    const client = clientOf(server.url, data);
    const side = Math.round(Math.sqrt(megapixels * 1e6));
    const image = await scene({ width: side, height: side });
    // As long as an upload may be: bytes after the end of an image are not read.
    const upload = Buffer.concat([image, Buffer.alloc(21e6 - image.length)]);
    let slowest = 0;
    let over = false;
    const health = (async () => {
      while (!over) {
        const started = performance.now();
        t.is((await fetch(`${server.url}/health/ready`)).status, 200);
        slowest = Math.max(slowest, performance.now() - started);
        await sleep(50);
      }
    })();
    const answers = await Promise.all(
      Array.from({ length: count }, () => client.cutout(upload, { size: '50MP', format: 'png' })),
    );
    over = true;
    await health;
    const codes: Record<string, number> = {};
    for (const { code } of answers) codes[code] = (codes[code] ?? 0) + 1;
    const { peak } = processState(server.child.pid ?? 0);
    t.log(
      `${JSON.stringify(codes)}, peak ${peak.toFixed(0)} MB, slowest look at health ${slowest.toFixed(0)} ms`,
    );
    t.deepEqual(Object.keys(codes).sort(), ['ok', 'service_unavailable']);
    t.true(peak < (limit * 2 ** 20) / 1e6, `${peak} MB`);
    // All memory is released: the next request is served.
    t.is((await client.cutout(upload, { size: 'preview' })).code, 'ok');
    await client.close();
  },
);

/**
 * libvips creates a thread whenever none of its own is idle, and ends one that was idle for 15 seconds: their number is
 * the recent maximum of busy threads, which a late coincidence of large images may raise. It is bounded all the same:
 * each image that libuv's pool decodes or encodes uses at most one thread per core and two writers.
 */
const libvips = 'libvips worker';
const maxOfLibvips = Number(process.env['UV_THREADPOOL_SIZE']) * (availableParallelism() + 2);
const numberOf = (state: ProcessState, which: (name: string) => boolean) =>
  state.threads.filter(which).length;
const ofLibvips = (state: ProcessState) => numberOf(state, (name) => name === libvips);
const ofOthers = (state: ProcessState) => numberOf(state, (name) => name !== libvips);

/** Minutes of the soak: CUTOUT_TEST_SOAK_MINUTES, 30 in the long mode. */
const soakMinutes = Number(process.env['CUTOUT_TEST_SOAK_MINUTES'] ?? (long ? 30 : 0.4));

async function settled(t: ExecutionContext, pid: number): Promise<ProcessState> {
  await sleep(soakMinutes < 1 ? 300 : 3000);
  const state = processState(pid);
  t.log(
    `${state.resident.toFixed(0)} MB, ${ofOthers(state)} threads and ${ofLibvips(state)} of libvips, ${state.descriptors} descriptors`,
  );
  return state;
}

test.serial('a soak of mixed requests leaves memory, threads and descriptors unchanged', async (t) => {
  t.timeout(soakMinutes * 60_000 * 2 + 1_800_000);
  sayShort(t, '30 minutes');
  const data = temporaryFolder(t);
  const server = await startServing(t, environment(data));
  const pid = server.child.pid ?? 0;
  const client = clientOf(server.url, data);
  const send = mixedSender(client, await openImages(undefined));
  // The short version omits the large ones, which take seconds each.
  const day = mixed(20).filter(({ megapixels }) => long || soakMinutes >= 1 || megapixels <= 4);
  const until = async (end: number, lanes: number) => {
    let next = 0;
    const lane = async () => {
      // Every kind at least once, so that the parts are comparable on a slow machine too.
      while (performance.now() < end || next < day.length) {
        const one = day[next++ % day.length];
        if (one) await send(one);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    return next;
  };
  // Every kind once, so that pools, allocator and V8 reach their size.
  for (const one of day) await send(one);
  const parts = 10;
  const states: ProcessState[] = [];
  let requests = 0;
  for (let part = 0; part < parts; part++) {
    requests += await until(performance.now() + (soakMinutes * 60_000) / parts, 4);
    states.push(await settled(t, pid));
  }
  t.log(`${requests} requests in ${soakMinutes} minutes`);
  const [, , third, ...rest] = states;
  const last = rest.slice(-3);
  const least = (of: (state: ProcessState) => number) => Math.min(...last.map(of));
  // The minimum of three: the garbage in V8's heap varies by tens of megabytes.
  t.true(least(({ resident }) => resident) < (third?.resident ?? 0) * 1.1 + 20);
  t.true(least(ofOthers) <= (third ? ofOthers(third) : 0));
  for (const state of states) t.true(ofLibvips(state) <= maxOfLibvips, `at most ${maxOfLibvips}`);
  t.true(least(({ descriptors }) => descriptors) <= (third?.descriptors ?? 0) + 2);
  await client.close();
});
