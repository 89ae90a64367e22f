import { mkdir, mkdtemp, readdir, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  engineFolderName,
  openTensorrtCache,
  type TensorrtCacheKey,
} from '../../src/models/tensorrtCache.ts';

const cacheKey: TensorrtCacheKey = {
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
  return path.join(folder, 'prepared.tensorrt.onnx');
}

/** Opens a cache, writes what TensorRT would, and keeps it. */
async function build(file: string, of: TensorrtCacheKey): Promise<string> {
  const cache = await openTensorrtCache(file, of);
  await writeFile(path.join(cache?.folder ?? '', 'network_sm89.engine'), 'engine');
  await writeFile(path.join(cache?.folder ?? '', 'cache_sm89.timing'), 'timing');
  await cache?.keep();
  return engineFolderName(of);
}

test('the key changes with everything that an engine depends on, and with nothing else', (t) => {
  const { gpu } = cacheKey;
  const others: TensorrtCacheKey[] = [
    { ...cacheKey, network: 'b'.repeat(64) },
    { ...cacheKey, fp16: false },
    { ...cacheKey, onnxruntime: '1.31.0' },
    { ...cacheKey, gpu: { ...gpu, name: 'NVIDIA L40S' } },
    { ...cacheKey, gpu: { ...gpu, computeCapability: '9.0' } },
    { ...cacheKey, gpu: { ...gpu, driver: '581.00' } },
    { ...cacheKey, gpu: { ...gpu, cuda: '13.1' } },
    { ...cacheKey, gpu: { ...gpu, tensorrt: '10.16.2' } },
  ];
  const keys = [cacheKey, ...others].map(engineFolderName);
  t.is(new Set(keys).size, keys.length);
  t.is(keys[0], engineFolderName({ ...cacheKey, gpu: { ...gpu } }));
  t.regex(keys[0] ?? '', /^[0-9a-f]{24}$/);
});

test('an engine is found again by exactly its key', async (t) => {
  const file = await prepared(t);
  t.false((await openTensorrtCache(file, cacheKey))?.built);
  const key = await build(file, cacheKey);
  const found = await openTensorrtCache(file, cacheKey);
  t.true(found?.built);
  t.is(path.basename(found?.folder ?? ''), key);
  const other = await openTensorrtCache(file, { ...cacheKey, onnxruntime: '1.31.0' });
  t.false(other?.built);
  await other?.discard();
  t.deepEqual(await readdir(file.replace('.onnx', '.engines')), [key]);
});

test('an engine that is cut short, incomplete or discarded is built again', async (t) => {
  const file = await prepared(t);
  const folder = path.join(file.replace('.onnx', '.engines'), await build(file, cacheKey));
  await truncate(path.join(folder, 'network_sm89.engine'), 3);
  t.false((await openTensorrtCache(file, cacheKey))?.built);
  await build(file, cacheKey);
  await rm(path.join(folder, 'cache_sm89.timing'));
  t.false((await openTensorrtCache(file, cacheKey))?.built);
  await build(file, cacheKey);
  await writeFile(path.join(folder, 'record.json'), '{');
  t.false((await openTensorrtCache(file, cacheKey))?.built);
  await build(file, cacheKey);
  const found = await openTensorrtCache(file, cacheKey);
  t.true(found?.built);
  await found?.discard();
  t.false((await openTensorrtCache(file, cacheKey))?.built);
});

test('nothing is kept where TensorRT wrote nothing, and nothing opened where the folder is not writable', async (t) => {
  const file = await prepared(t);
  const empty = await openTensorrtCache(file, cacheKey);
  await empty?.keep();
  t.false((await openTensorrtCache(file, cacheKey))?.built);
  t.is(await openTensorrtCache('/proc/nothing/prepared.onnx', cacheKey), undefined);
});

test('the newest engines are kept, and what killed processes left is deleted', async (t) => {
  const file = await prepared(t);
  const parent = file.replace('.onnx', '.engines');
  const keys: string[] = [];
  for (const onnxruntime of ['1', '2', '3', '4', '5']) {
    const key = await build(file, { ...cacheKey, onnxruntime });
    const time = new Date(Date.now() - 100_000 + keys.length * 1000);
    await utimes(path.join(parent, key), time, time);
    await mkdir(path.join(parent, `${key}.kernels`));
    keys.push(key);
  }
  const left = path.join(parent, '.pull-left.1');
  await mkdir(left);
  await utimes(left, new Date(0), new Date(0));
  const last = await build(file, { ...cacheKey, onnxruntime: '6' });
  const kept = keys.slice(2).flatMap((key) => [key, `${key}.kernels`]);
  t.deepEqual((await readdir(parent)).sort(), [...kept, last].sort());
});

test('kernels are kept beside their engine, which they do not change, and deleted with it', async (t) => {
  const file = await prepared(t);
  const key = await build(file, cacheKey);
  const first = await openTensorrtCache(file, cacheKey);
  t.is(path.basename(first?.kernels ?? ''), `${key}.kernels`);
  await mkdir(first?.kernels ?? '');
  await writeFile(path.join(first?.kernels ?? '', 'network'), 'kernels');
  const second = await openTensorrtCache(file, cacheKey);
  t.true(second?.built);
  t.is(second?.kernels, first?.kernels);
  await second?.discard();
  t.deepEqual(await readdir(path.dirname(second?.folder ?? '')), []);
});
