import { mkdir, mkdtemp, readdir, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type EngineMaker, engineKey, openEngineCache } from '../../src/models/tensorrtCache.ts';

const maker: EngineMaker = {
  network: 'a'.repeat(64),
  fp16: true,
  onnxruntime: '1.30.0',
  gpu: {
    name: 'NVIDIA L4',
    computeCapability: '8.9',
    driver: '580.82.07',
    cuda: '13.0',
    tensorrt: '10.16.1',
  },
};

async function prepared(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'cutout-engines-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return path.join(folder, 'prepared.fp16.onnx');
}

/** Opens a cache, writes what TensorRT would, and keeps it. */
async function build(file: string, of: EngineMaker): Promise<string> {
  const cache = await openEngineCache(file, of);
  await writeFile(path.join(cache?.folder ?? '', 'network_sm89.engine'), 'engine');
  await writeFile(path.join(cache?.folder ?? '', 'cache_sm89.timing'), 'timing');
  await cache?.keep();
  return engineKey(of);
}

test('the key changes with everything that an engine depends on, and with nothing else', (t) => {
  const { gpu } = maker;
  const others: EngineMaker[] = [
    { ...maker, network: 'b'.repeat(64) },
    { ...maker, fp16: false },
    { ...maker, onnxruntime: '1.31.0' },
    { ...maker, gpu: { ...gpu, name: 'NVIDIA L40S' } },
    { ...maker, gpu: { ...gpu, computeCapability: '9.0' } },
    { ...maker, gpu: { ...gpu, driver: '581.00' } },
    { ...maker, gpu: { ...gpu, cuda: '13.1' } },
    { ...maker, gpu: { ...gpu, tensorrt: '10.16.2' } },
  ];
  const keys = [maker, ...others].map(engineKey);
  t.is(new Set(keys).size, keys.length);
  t.is(keys[0], engineKey({ ...maker, gpu: { ...gpu } }));
  t.regex(keys[0] ?? '', /^[0-9a-f]{24}$/);
});

test('an engine is found again by exactly its maker', async (t) => {
  const file = await prepared(t);
  t.false((await openEngineCache(file, maker))?.built);
  const key = await build(file, maker);
  const found = await openEngineCache(file, maker);
  t.true(found?.built);
  t.is(path.basename(found?.folder ?? ''), key);
  const other = await openEngineCache(file, { ...maker, onnxruntime: '1.31.0' });
  t.false(other?.built);
  await other?.discard();
  t.deepEqual(await readdir(file.replace('.onnx', '.tensorrt')), [key]);
});

test('an engine that is cut short, incomplete or discarded is built again', async (t) => {
  const file = await prepared(t);
  const folder = path.join(file.replace('.onnx', '.tensorrt'), await build(file, maker));
  await truncate(path.join(folder, 'network_sm89.engine'), 3);
  t.false((await openEngineCache(file, maker))?.built);
  await build(file, maker);
  await rm(path.join(folder, 'cache_sm89.timing'));
  t.false((await openEngineCache(file, maker))?.built);
  await build(file, maker);
  await writeFile(path.join(folder, 'record.json'), '{');
  t.false((await openEngineCache(file, maker))?.built);
  await build(file, maker);
  const found = await openEngineCache(file, maker);
  t.true(found?.built);
  await found?.discard();
  t.false((await openEngineCache(file, maker))?.built);
});

test('nothing is kept where TensorRT wrote nothing, and nothing opened where the folder is not writable', async (t) => {
  const file = await prepared(t);
  const empty = await openEngineCache(file, maker);
  await empty?.keep();
  t.false((await openEngineCache(file, maker))?.built);
  t.is(await openEngineCache('/proc/nothing/prepared.onnx', maker), undefined);
});

test('the newest engines are kept, and what killed processes left is deleted', async (t) => {
  const file = await prepared(t);
  const parent = file.replace('.onnx', '.tensorrt');
  const keys: string[] = [];
  for (const onnxruntime of ['1', '2', '3', '4', '5']) {
    const key = await build(file, { ...maker, onnxruntime });
    const time = new Date(Date.now() - 100_000 + keys.length * 1000);
    await utimes(path.join(parent, key), time, time);
    keys.push(key);
  }
  const left = path.join(parent, '.pull-left.1');
  await mkdir(left);
  await utimes(left, new Date(0), new Date(0));
  const last = await build(file, { ...maker, onnxruntime: '6' });
  t.deepEqual((await readdir(parent)).sort(), [...keys.slice(2), last].sort());
});
