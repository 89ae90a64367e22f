import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'ava';
import { availableCores, chooseThreads, describeThreads } from '../../src/engine/threads.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';

test('every machine gets at least one thread of each kind, and no more runs than cores', (t) => {
  for (let cores = 1; cores <= 128; cores++) {
    const { workers, intraOpThreads, pixelThreads } = chooseThreads({}, cores);
    t.true(workers >= 1 && workers <= cores && intraOpThreads >= 1 && intraOpThreads <= cores);
    t.is(pixelThreads, cores);
    t.true(workers * intraOpThreads <= cores, 'runs do not fight for cores');
    t.true(workers * intraOpThreads > cores / 2, 'most cores work under load');
  }
});

test('configured numbers are used unchanged', (t) => {
  t.deepEqual(chooseThreads({ workers: 3, intraOpThreads: 5 }, 2), {
    workers: 3,
    intraOpThreads: 5,
    pixelThreads: 2,
  });
  t.deepEqual(chooseThreads({ workers: 1 }, 16), { workers: 1, intraOpThreads: 16, pixelThreads: 16 });
  t.deepEqual(chooseThreads({ intraOpThreads: 7 }, 16), { workers: 2, intraOpThreads: 7, pixelThreads: 16 });
  t.deepEqual(chooseThreads({ workers: 4 }, 16), { workers: 4, intraOpThreads: 4, pixelThreads: 16 });
});

test('a GPU needs one thread per run', (t) => {
  t.is(chooseThreads({ provider: 'cuda' }, 16).intraOpThreads, 1);
});

test('with batches there are workers for two of them', (t) => {
  t.is(chooseThreads({ provider: 'cuda', maxBatch: 8 }, 16).workers, 16);
  t.is(chooseThreads({ provider: 'cuda', maxBatch: 1 }, 16).workers, 2);
  t.is(chooseThreads({ provider: 'cuda', maxBatch: 8, workers: 5 }, 16).workers, 5);
  t.is(chooseThreads({ provider: 'cuda', maxBatch: 8, devices: 2 }, 16).workers, 32);
  t.is(chooseThreads({ provider: 'cuda', maxBatch: 1, devices: 2 }, 16).workers, 4);
});

test('the start-up line names every number', (t) => {
  t.is(
    describeThreads({ workers: 1, intraOpThreads: 2, pixelThreads: 2 }, 2),
    '2 cores: 1 worker x 2 threads, 2 pixel threads',
  );
});

test('the CPU quota of a container limits the cores', (t) => {
  const groups = mkdtempSync(path.join(os.tmpdir(), 'cutout-groups-'));
  t.teardown(() => rmSync(groups, { recursive: true }));
  const cores = () => availableCores(groups, 8);
  t.is(cores(), 8, 'no control groups');
  mkdirSync(path.join(groups, 'cpu'));
  const version1 = (quota: number) => {
    writeFileSync(path.join(groups, 'cpu', 'cpu.cfs_quota_us'), `${quota}\n`);
    writeFileSync(path.join(groups, 'cpu', 'cpu.cfs_period_us'), '100000\n');
  };
  version1(-1);
  t.is(cores(), 8);
  version1(250_000);
  t.is(cores(), 3);
  for (const [limit, expected] of [
    ['max 100000', 8],
    ['150000 100000', 2],
    ['20000 100000', 1],
    ['6400000 100000', 8],
  ] as const) {
    writeFileSync(path.join(groups, 'cpu.max'), `${limit}\n`);
    t.is(cores(), expected, limit);
  }
});

/** Linux: the cores that this process may use, as ranges. */
const ownCores = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';

test('a process with a set of one core runs ONNX Runtime on it, without a message', (t) => {
  const program = `
    const { loadAddon } = await import(${JSON.stringify(import.meta.resolve('../../src/engine/addon.js'))});
    const { createEngine } = await import(${JSON.stringify(import.meta.resolve('../../src/engine/engine.js'))});
    const { availableCores, chooseThreads } = await import(${JSON.stringify(import.meta.resolve('../../src/engine/threads.js'))});
    const { engineOptions, halves, Networks, planFor } = await import(${JSON.stringify(import.meta.resolve('../fixtures/engineSetup.js'))});
    const networks = new Networks();
    const engine = createEngine(loadAddon(), { ...engineOptions(), ...chooseThreads() });
    await engine.load(networks.spec('tiny'));
    const image = halves(256, 256);
    await engine.matte(image, planFor('tiny', image));
    console.log(JSON.stringify([availableCores(), chooseThreads()]));
    await engine.close(0);
    networks.remove();
  `;
  const args = ['-c', ownCores, process.execPath, '--input-type=module', '-e', program];
  const { stdout, stderr, error } = spawnSync('taskset', args, { encoding: 'utf8', timeout: 60_000 });
  if (error) return sayLeftOut(t, 'taskset (util-linux) is not installed');
  t.is(stderr, '');
  const [cores, threads] = JSON.parse(stdout) as [number, { workers: number; intraOpThreads: number }];
  t.is(cores, 1);
  t.like(threads, { workers: 1, intraOpThreads: 1 });
});
