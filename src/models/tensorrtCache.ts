import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Gpu } from '../engine/types.ts';
import { draftFolder, lengthsIn, RECORD, removeFolder } from './files.ts';
import { readKept } from './json.ts';
import { UNFINISHED } from './layout.ts';

/**
 * TensorRT's engines, built for one network on one kind of GPU and cached beside the prepared file. TensorRT does not
 * detect a cache of another version or GPU, so its folder is named after everything that it depends on; any other is
 * not opened.
 */

/** What an engine depends on. */
export interface TensorrtCacheKey {
  /** SHA-256 of the prepared network. */
  readonly network: string;
  readonly fp16: boolean;
  /** Version of ONNX Runtime. */
  readonly onnxruntime: string;
  readonly gpu: Pick<Gpu, 'name' | 'computeCapability' | 'driver' | 'cuda' | 'tensorrt'>;
  /** CUTOUT_BATCH_MAX, where one engine computes all sizes of batches. */
  readonly batchMax?: number | 'auto';
}

export function engineFolderName({ network, fp16, onnxruntime, gpu, batchMax }: TensorrtCacheKey): string {
  const { name, computeCapability, driver, cuda, tensorrt } = gpu;
  const format = fp16 ? 'fp16' : 'fp32';
  const parts = [network, format, onnxruntime, tensorrt, cuda, driver, computeCapability, name, batchMax];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
}

/** Folders that are kept, the newest first: several kinds of GPU may share a models folder. */
const KEPT = 4;

const recordSchema = z.record(z.string(), z.number().int());

const folderOf = (prepared: string) => prepared.replace(/\.onnx$/, '.engines');

const kernelsOf = (folder: string) => `${folder}.kernels`;

interface TensorrtCache {
  /** For NetworkSpec.engineCache. */
  readonly folder: string;
  /** The folder for NetworkSpec.kernelCache; it is not in the engine's, because it grows while the engine is used. */
  readonly kernels: string;
  /** Whether an engine is in it; otherwise loading the network builds one. */
  readonly built: boolean;
  /** Keeps what was built. Failures leave no cache behind; the next start builds again. */
  keep(): Promise<void>;
  /** Deletes it, after a load that failed. */
  discard(): Promise<void>;
}

/** Deletes the oldest engines, and what killed processes left for an hour. */
async function sweep(parent: string): Promise<void> {
  const found: { readonly folder: string; readonly age: number; readonly unfinished: boolean }[] = [];
  const names = await readdir(parent);
  for (const name of names.filter((each) => path.extname(each) !== '.kernels')) {
    const folder = path.join(parent, name);
    const age = Date.now() - (await stat(folder)).mtimeMs;
    found.push({ folder, age, unfinished: name.startsWith(UNFINISHED) });
  }
  const complete = found.filter(({ unfinished }) => !unfinished).sort((a, b) => a.age - b.age);
  const old = found.filter(({ unfinished, age }) => unfinished && age > 3_600_000);
  for (const { folder } of [...complete.slice(KEPT), ...old])
    for (const each of [folder, kernelsOf(folder)]) await rm(each, { recursive: true, force: true });
}

/**
 * Returns the cache of exactly this engine, or a new folder to build it in; undefined if the models folder is not writable.
 * Every cache must be kept or discarded.
 */
export async function openTensorrtCache(
  prepared: string,
  cacheKey: TensorrtCacheKey,
): Promise<TensorrtCache | undefined> {
  const parent = folderOf(prepared);
  const final = path.join(parent, engineFolderName(cacheKey));
  const kernels = kernelsOf(final);
  const discard = async (folder: string) => void (await Promise.all([folder, kernels].map(removeFolder)));
  const wanted = await readKept(recordSchema, path.join(final, RECORD));
  const given = await lengthsIn(final).catch(() => undefined);
  if (wanted && isDeepStrictEqual(wanted, given))
    return { folder: final, kernels, built: true, keep: async () => {}, discard: () => discard(final) };
  // Not recursive: the folder of the network exists (src/folder.ts says why). Where this fails, the draft does too.
  await mkdir(parent).catch(() => {});
  const draft = await draftFolder(final);
  if (!draft) return undefined;
  const keep = async () => {
    await draft.keep((lengths) => lengths);
    await sweep(parent).catch(() => {});
  };
  return { folder: draft.folder, kernels, built: false, keep, discard: () => discard(draft.folder) };
}
