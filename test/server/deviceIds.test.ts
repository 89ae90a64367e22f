import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'ava';
import { loadConfig } from '../../src/config/readConfig.ts';
import { defaultRuntimePath, loadAddon } from '../../src/engine/addon.ts';
import { UserError } from '../../src/errors.ts';
import { deviceIdsOf, librariesOf, startEngine, threadsOf } from '../../src/server/openEngine.ts';
import { Recorder } from '../fixtures/networks.ts';
import { pretendInstalled } from '../fixtures/runtimes.ts';

const engine = (device: string, ids: string) =>
  loadConfig({ CUTOUT_DEVICE: device, CUTOUT_DEVICE_ID: ids }).engine;

test('the GPUs of the settings; on the CPU none is looked at', (t) => {
  t.deepEqual(deviceIdsOf(engine('cuda', '2,0')), [2, 0]);
  t.deepEqual(deviceIdsOf(engine('cpu', '2,0')), [0]);
  t.deepEqual(deviceIdsOf(engine('cpu', 'all')), [0]);
});

test('all: those that the driver shows, and number 0 where there are none, so that opening it says why', (t) => {
  const count = loadAddon().computeCapabilities().length;
  t.true(Number.isInteger(count) && count >= 0);
  const ids = deviceIdsOf(engine('cuda', 'all'));
  t.is(ids.length, Math.max(1, count));
  t.deepEqual(
    ids,
    ids.map((_, at) => at),
  );
});

test('workers for two full batches on each GPU', (t) => {
  t.is(threadsOf(engine('cuda', '0,1,2')).workers, 48);
  t.is(
    threadsOf(engine('webgpu', '0')).workers,
    threadsOf({ ...engine('webgpu', '0'), batchMax: 1 }).workers,
  );
});

test('WebGPU: one GPU, the library of the npm package, and no bound of memory', async (t) => {
  t.deepEqual(deviceIdsOf(engine('webgpu', 'all')), [0]);
  const { engine: config } = loadConfig({ CUTOUT_DEVICE: 'webgpu', CUTOUT_DEVICE_MEMORY: '4G' });
  t.deepEqual(librariesOf(config), { provider: 'webgpu', runtimePath: defaultRuntimePath() });
  await t.throwsAsync(startEngine(loadAddon(), config, new Recorder()), {
    instanceOf: UserError,
    message: /CUTOUT_DEVICE_MEMORY bounds the memory of NVIDIA GPUs only/,
  });
});

test('TensorRT: the plugin where it is installed and no library is named, else the build for GPUs', (t) => {
  const data = mkdtempSync(path.join(os.tmpdir(), 'cutout-libraries-'));
  t.teardown(() => rmSync(data, { recursive: true }));
  const read = (runtime = '') =>
    librariesOf(
      loadConfig({ CUTOUT_DATA_DIR: data, CUTOUT_DEVICE: 'tensorrt', CUTOUT_RUNTIME: runtime }).engine,
    );
  const hasRtx = loadAddon()
    .computeCapabilities()
    .every((each) => Number(each) >= 12 || each === '8.6' || each === '8.9');
  t.throws(() => read(), {
    instanceOf: UserError,
    message: hasRtx ? /cutout runtime install tensorrt/ : /cutout runtime install cuda/,
  });
  const runtimesDir = path.join(data, 'runtimes');
  pretendInstalled(runtimesDir, 'cuda');
  t.like(read(), { provider: 'tensorrt', plugin: undefined });
  pretendInstalled(runtimesDir, 'tensorrt');
  t.is(read().provider, hasRtx ? 'tensorrt-rtx' : 'tensorrt');
  t.deepEqual(read('/opt/libonnxruntime.so'), {
    provider: 'tensorrt',
    runtimePath: '/opt/libonnxruntime.so',
  });
});
