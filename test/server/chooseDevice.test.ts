import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { loadConfig } from '../../src/config/readConfig.ts';
import { measureDevices } from '../../src/server/chooseDevice.ts';
import {
  candidatesOf,
  deviceQuestion,
  knownDevice,
  type MachineFacts,
} from '../../src/server/deviceQuestion.ts';
import { openEngine } from '../../src/server/openEngine.ts';
import { modelsFolder, temporaryFolder } from '../fixtures/cli.ts';
import type { Play } from '../fixtures/deviceTrialChild.ts';
import { eventually } from '../fixtures/eventually.ts';
import { unless } from '../fixtures/leftOut.ts';

const nothing: MachineFacts = {
  capabilities: [],
  runtimes: [],
  kernels: false,
  webgpu: true,
  renderers: [],
};

test('the devices that are measured, by what is known of the machine', (t) => {
  const on = (facts: Partial<MachineFacts>, env: Record<string, string> = {}) =>
    candidatesOf(loadConfig(env).engine, { ...nothing, ...facts }).join(' ');
  t.is(on({}), 'cpu');
  t.is(on({ kernels: true, runtimes: ['cuda', 'tensorrt'] }), 'cpu', 'without a GPU');
  const l4 = { capabilities: ['8.9'] };
  t.is(on(l4), 'cpu webgpu');
  t.is(on({ ...l4, kernels: true }), 'cpu cuda webgpu');
  t.is(on({ ...l4, runtimes: ['cuda'] }), 'cpu cuda webgpu');
  t.is(on({ ...l4, runtimes: ['tensorrt'] }), 'cpu tensorrt webgpu');
  t.is(on({ ...l4, kernels: true, runtimes: ['cuda', 'tensorrt'], webgpu: false }), 'cpu cuda tensorrt');
  t.is(
    on({ capabilities: ['8.9', '7.5'], kernels: true }),
    'cpu webgpu',
    'the kernels need 8.0 of every GPU',
  );
  t.is(on({ capabilities: ['10.0'], kernels: true, webgpu: false }), 'cpu cuda');
  t.is(
    on({ capabilities: ['8.9', '9.0'], runtimes: ['tensorrt'] }),
    'cpu webgpu',
    'one that RTX does not take',
  );
  t.is(on({ renderers: ['0x1002 0x744c'] }), 'cpu webgpu');
  t.is(on({ renderers: ['0x1002 0x744c'], webgpu: false }), 'cpu');
  t.is(on({}, { VK_DRIVER_FILES: '/x.json' }), 'cpu webgpu');
  const all = { ...l4, kernels: true, runtimes: ['cuda', 'tensorrt'] } as const;
  t.is(on(all, { CUTOUT_PRECISION: 'int8' }), 'cpu');
  t.is(on(all, { CUTOUT_RUNTIME: '/x.so' }), 'cpu cuda');
  t.is(on(all, { CUTOUT_DEVICE_MEMORY: '4G' }), 'cpu cuda tensorrt');
});

const program = fileURLToPath(new URL('../fixtures/deviceTrialChild.js', import.meta.url));

/** A folder in which the processes that measure play what they are told. */
function stage(t: ExecutionContext, plays: Readonly<Record<string, Play>>, limit = 60) {
  const data = temporaryFolder(t);
  writeFileSync(path.join(data, 'trials.json'), JSON.stringify(plays));
  const file = path.join(data, 'models', 'u2netp', 'device.json');
  const config = { ...loadConfig({ CUTOUT_MODEL: 'u2netp' }).engine, runtimesDir: data };
  const candidates = Object.keys(plays) as ('cpu' | 'webgpu')[];
  const notices: string[] = [];
  const stopping = new AbortController();
  const observer = { notice: (text: string) => void notices.push(text), progress: () => {} };
  const limits = { cpu: 60, cuda: 60, tensorrt: 60, webgpu: limit };
  const measure = (key = 'a', given = file, again = false) =>
    measureDevices(
      config,
      { candidates, alone: '', key, file: given },
      { pull: true, observer, signal: stopping.signal },
      again,
      { program, limits },
    );
  const played = () => {
    const text = existsSync(path.join(data, 'played')) ? readFileSync(path.join(data, 'played'), 'utf8') : '';
    return text
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' '));
  };
  return { measure, notices, played, stopping, file };
}

const isAlive = (pid: string | undefined): boolean => {
  try {
    return process.kill(Number(pid), 0);
  } catch {
    return false;
  }
};

test('a faster GPU wins, once: the choice is kept for its key', async (t) => {
  const { measure, played, notices } = stage(t, { cpu: 10.04, cuda: 250.26, webgpu: 3 });
  const chosen = { device: 'cuda', because: 'measured with u2netp: cpu 10, cuda 250, webgpu 3 images/s' };
  t.deepEqual(await measure(), chosen as never);
  // One after the other, and the first one alone may fetch the network.
  t.deepEqual(
    played().map(([device, , pull]) => `${device} ${pull}`),
    ['cpu true', 'cuda false', 'webgpu false'],
  );
  t.true(notices.includes('cuda: begins'));
  t.like(await measure(), chosen);
  t.is(played().length, 3);
  await measure('another key');
  t.is(played().length, 6);
  await measure('another key', undefined, true);
  t.is(played().length, 9, 'measured again');
});

test('of two that give the same figure the processor is taken', async (t) => {
  const { measure } = stage(t, { cpu: 10.01, webgpu: 10.04 });
  t.is((await measure()).device, 'cpu');
});

test('devices that fail, crash or do not end are left out, and said', async (t) => {
  const { measure, played, notices } = stage(
    t,
    { cpu: 10, cuda: 'SIGUSR2', tensorrt: { failure: 'No TensorRT here.' }, webgpu: 'hangs' },
    2,
  );
  const { device, because } = await measure();
  t.is(device, 'cpu');
  t.regex(because, /cpu 10 images\/s; cuda, tensorrt, webgpu failed$/);
  const said = notices.join('\n');
  t.regex(said, /^The device cuda is left out: its process ended with SIGUSR2$/m);
  t.regex(said, /^The device tensorrt is left out: No TensorRT here\.$/m);
  t.regex(said, /^The device webgpu is left out: it took longer than 2 s$/m);
  t.deepEqual(
    played().map(([, pid]) => isAlive(pid)),
    [false, false, false, false],
  );
});

test('a process that is killed from outside says nothing of its device: nothing is kept', async (t) => {
  const { measure, played, notices, file } = stage(t, { cpu: 10, cuda: 'SIGKILL' });
  t.like(await measure(), { device: 'cpu', because: 'measured with u2netp: cpu 10 images/s; cuda failed' });
  t.false(existsSync(file));
  t.regex(notices.join('\n'), /killed while it measured, so the next start measures again/);
  await measure();
  t.is(played().length, 4);
});

test('a device that hangs once it has answered counts, and is ended', async (t) => {
  const { measure, played } = stage(t, { cpu: 1, webgpu: 'hangs after its answer' });
  t.is((await measure()).device, 'webgpu');
  t.false(isAlive(played()[1]?.[1]));
});

test('where nothing can be measured cpu is taken, and measured again', async (t) => {
  const { measure, played, file } = stage(t, { cpu: { failure: 'no' }, webgpu: { failure: 'no' } });
  const expected = { device: 'cpu', because: 'none of cpu, webgpu could be measured' };
  t.deepEqual(await measure(), expected as never);
  t.false(existsSync(file));
  await measure();
  t.is(played().length, 4);
});

test('a folder that cannot be written: measured each time, and said', async (t) => {
  const { measure, played, notices } = stage(t, { cpu: 1, webgpu: 2 });
  for (const times of [1, 2]) {
    t.is((await measure('a', '/proc/nowhere/device.json')).device, 'webgpu');
    t.is(played().length, 2 * times);
    t.is(notices.filter((text) => text.includes('every start measures')).length, times);
  }
});

test('two starts at a time: one measures, the other takes its choice', async (t) => {
  const { measure, played } = stage(t, { cpu: 1, webgpu: 2 });
  const both = await Promise.all([measure(), measure()]);
  t.deepEqual(
    both.map(({ device }) => device),
    ['webgpu', 'webgpu'],
  );
  t.is(played().length, 2);
});

test('a stop ends what is measured, and nothing is kept', async (t) => {
  const { measure, played, stopping, file } = stage(t, { cpu: 1, webgpu: 'hangs' });
  const measuring = measure();
  await eventually(() => played().length === 2);
  stopping.abort(new Error('stopped'));
  await t.throwsAsync(measuring, { message: 'stopped' });
  t.false(isAlive(played()[1]?.[1]));
  t.false(existsSync(file));
});

test('commands that run nothing know the device or say why not, and never fail', async (t) => {
  const read = (env: Record<string, string>) =>
    knownDevice(loadConfig({ CUTOUT_DATA_DIR: temporaryFolder(t), CUTOUT_DEVICE: 'auto', ...env }).engine);
  t.like(await read({ CUTOUT_PRECISION: 'int8' }), {
    ...{ auto: false, device: 'cpu', deviceBecause: 'CUTOUT_PRECISION is for CPUs' },
  });
  const unknown = await read({ CUTOUT_MODEL: 'nothing-like-it' });
  t.like(unknown, { auto: false, device: 'cpu' });
  t.regex(unknown.deviceBecause ?? '', /^not measured yet/);
  t.is((await read({ CUTOUT_DEVICE: 'webgpu' })).deviceBecause, undefined);
});

const noWebgpu =
  process.platform === 'linux' && process.arch === 'x64' ? undefined : 'nothing is chosen without WebGPU';

unless(noWebgpu)('a choice that cannot be opened any more fails the start, and is forgotten', async (t) => {
  const data = temporaryFolder(t);
  const drivers = path.join(data, 'nothing.json');
  const { VK_DRIVER_FILES: before } = process.env;
  process.env['VK_DRIVER_FILES'] = drivers;
  t.teardown(() => {
    if (before === undefined) delete process.env['VK_DRIVER_FILES'];
    else process.env['VK_DRIVER_FILES'] = before;
  });
  const { engine } = loadConfig({
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')),
    CUTOUT_MODEL: 'u2netp',
    CUTOUT_DEVICE: 'auto',
    CUTOUT_SUBJECT_TYPES: 'off',
    VK_DRIVER_FILES: drivers,
  });
  const { key, file, candidates } = await deviceQuestion(engine);
  t.true(candidates.includes('webgpu'));
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify({ key, device: 'webgpu', because: 'it was measured' }));
  t.like(await knownDevice(engine), { device: 'webgpu', deviceBecause: 'it was measured' });
  const notices: string[] = [];
  const observer = { notice: (text: string) => void notices.push(text), progress: () => {} };
  const opening = openEngine(engine, { pull: false, observer, signal: new AbortController().signal });
  await t.throwsAsync(opening, { code: 'ENGINE_DRIVER' });
  t.false(existsSync(file));
  t.true(notices.includes('The device is webgpu: it was measured.'));
  t.regex(notices.at(-1) ?? '', /^webgpu was the fastest and cannot be opened/);
});
