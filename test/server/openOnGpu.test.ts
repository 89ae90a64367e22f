import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loadConfig } from '../../src/config/readConfig.ts';
import { EngineError, type Gpu, type NetworkInfo, type NetworkSpec } from '../../src/engine/types.ts';
import { openOnGpu } from '../../src/server/openNetwork.ts';
import { FakeEngine } from '../fixtures/fakeEngine.ts';
import { gpu } from '../fixtures/gpu.ts';

/** Opens IS-Net on a GPU whose engine does what `load` says; collects what the operator is told. */
async function place(t: ExecutionContext, device: 'cuda' | 'tensorrt', gpus: readonly Gpu[] = [gpu]) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'cutout-gpu-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const located: NetworkSpec = {
    name: 'isnet',
    path: path.join(folder, 'prepared.tensorrt.onnx'),
    width: 1024,
    height: 1024,
    mean: [128, 128, 128],
    std: [256, 256, 256],
    output: 'probability',
  };
  const record = { preparer: 8, sourceSha256: '', sha256: '', bytes: 1, precision: 'fp16', outputs: [] };
  await mkdir(path.join(folder, 'isnet'));
  await writeFile(
    path.join(folder, 'isnet', 'prepared.tensorrt.json'),
    JSON.stringify({ ...record, freeBatch: true, sizeStep: 0 }),
  );
  const { engine: config } = loadConfig({ CUTOUT_DEVICE: device, CUTOUT_MODELS_DIR: folder });
  const loads: NetworkSpec[] = [];
  const open = async (load: (spec: NetworkSpec) => Promise<void>) => {
    const notices: string[] = [];
    const engine = {
      ...new FakeEngine().asEngine(),
      gpus: () => gpus,
      load: async (spec: NetworkSpec): Promise<NetworkInfo> => {
        loads.push(spec);
        await load(spec);
        return { name: spec.name, loadMs: 1, warmUpMs: 1 };
      },
    };
    const signal = new AbortController().signal;
    const opening = { engine, located, form: 'tensorrt', cacheKey: undefined, signal } as const;
    const observer = { notice: (text: string) => void notices.push(text), progress: () => {} };
    await openOnGpu(opening, config, { ensure: async () => located, observer, onnxruntime: '1.30.0' });
    return notices;
  };
  const engines = () => readdir(path.join(folder, 'prepared.tensorrt.engines'));
  return { open, loads, engines };
}

/** TensorRT writes its engine while a network is opened. */
const build = ({ engineCache = '' }: NetworkSpec) =>
  writeFile(path.join(engineCache, 'sm89.engine'), 'engine');

test('CUDA: the network in float16, without a cache of engines', async (t) => {
  const { open, loads } = await place(t, 'cuda');
  t.deepEqual(await open(async () => {}), [
    "isnet runs by ONNX Runtime's provider for CUDA on GPU 0 (NVIDIA L4).",
  ]);
  t.like(loads[0], { name: 'isnet', fp16: true });
  t.is(loads[0]?.engineCache, undefined);
});

test('TensorRT: an engine is built once, and the operator is told', async (t) => {
  const { open, loads, engines } = await place(t, 'tensorrt');
  const [told = '', ...rest] = await open(build);
  t.regex(told, /^TensorRT 10\.16\.1 builds the engine of isnet for NVIDIA L4: this takes minutes, once\.$/);
  t.deepEqual(rest, []);
  const [key = ''] = await engines();
  t.deepEqual(await open(async () => {}), []);
  t.is(path.basename(loads[1]?.engineCache ?? ''), key);
  t.is(loads[1]?.kernelCache, undefined);
  t.deepEqual(await engines(), [key]);
});

test('TensorRT: a cached engine that cannot be opened is built again, once', async (t) => {
  const { open, loads, engines } = await place(t, 'tensorrt');
  await open(build);
  const keys = await engines();
  const fails = new EngineError('ENGINE_MODEL', 'The engine cannot be deserialised.');
  const notices = await open(async (spec) => {
    if (loads.length === 2) throw fails;
    await build(spec);
  });
  t.regex(notices[0] ?? '', /cached engine of isnet cannot be used and is built again/);
  t.is(loads.length, 3);
  t.deepEqual(await engines(), keys);
  const second = await t.throwsAsync(
    open(() => Promise.reject(fails)),
    { is: fails },
  );
  t.is(second, fails);
  // The stale engine and the failed build are both gone.
  t.deepEqual(await engines(), []);
});

test('TensorRT for RTX: an engine is for all sizes of batches', async (t) => {
  const rtx = { ...gpu, tensorrt: 'for RTX, provider 0.5.0' };
  const { open, loads, engines } = await place(t, 'tensorrt', [rtx]);
  const [told = '', runs = ''] = await open(build);
  t.regex(
    told,
    /^TensorRT for RTX, provider 0\.5\.0 builds the engine of isnet for NVIDIA L4: this takes seconds, once/,
  );
  t.regex(runs, /runs by TensorRT for RTX; the steps around the network run on the CPU/);
  const [key = '', ...others] = await engines();
  t.deepEqual(others, []);
  // While the engine is built its folder has another name; the kernels' has not.
  t.is(path.basename(loads[0]?.kernelCache ?? ''), `${key}.kernels`);
});

test('several GPUs: TensorRT takes those of one kind, CUDA any', async (t) => {
  const second = { ...gpu, id: 1 };
  const other = { ...gpu, id: 1, name: 'Tesla T4', computeCapability: '7.5' };
  const alike = await place(t, 'tensorrt', [gpu, second]);
  await alike.open(build);
  t.is((await alike.engines()).length, 1);
  const mixed = await place(t, 'tensorrt', [gpu, other]);
  await t.throwsAsync(mixed.open(build), {
    code: 'ENGINE_DEVICE',
    message: /0 is NVIDIA L4 \(compute capability 8\.9\) and 1 is Tesla T4 .*CUTOUT_DEVICE_ID/,
  });
  t.is(mixed.loads.length, 0);
  const cuda = await place(t, 'cuda', [gpu, other]);
  await cuda.open(async () => {});
  t.is(cuda.loads.length, 1);
});
