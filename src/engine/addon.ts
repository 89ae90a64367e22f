import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isTruncated } from './elf.ts';
import { EngineError, expectedAbi, type NativeModule } from './types.ts';

const require = createRequire(import.meta.url);

const inBuild = (folder: string): string => fileURLToPath(new URL(`../../../${folder}`, import.meta.url));

/**
 * Folder of the addon and of ONNX Runtime's library in a package made by `npm run package`; undefined in a checkout and
 * in a container image, where set-up has built the addon and the library is npm's.
 */
const carried = existsSync(inBuild('binaries'))
  ? inBuild(`binaries/${process.platform}-${process.arch}`)
  : undefined;

/** What mends missing or damaged binaries. */
const remedy = carried ? 'install Cutout again' : 'build it again with `npm run setup`';

export const defaultAddonPath = path.join(carried ?? inBuild('native/Release'), 'cutout.node');

/** ONNX Runtime's file by platform, as its npm package names it. */
const libraries: Partial<Record<NodeJS.Platform, string>> = {
  linux: 'libonnxruntime.so.1',
  darwin: 'libonnxruntime.1.dylib',
  win32: 'onnxruntime.dll',
};

const reason = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n', 1)[0] ?? text;
};

/**
 * Loads the native addon and checks that its ABI version is this one. @throws EngineError ENGINE_RUNTIME with
 * one sentence: the file is missing, cannot be loaded on this system, or was built from other sources.
 */
export function loadAddon(file: string = defaultAddonPath): NativeModule {
  let loaded: unknown;
  try {
    if (isTruncated(file)) throw new Error('the file is cut short');
    loaded = require(file);
  } catch (cause) {
    const missing = cause instanceof Error && 'code' in cause && cause.code === 'MODULE_NOT_FOUND';
    const fault = missing ? 'does not exist' : `cannot be loaded (${reason(cause)})`;
    throw new EngineError('ENGINE_RUNTIME', `The native addon '${file}' ${fault}: ${remedy}.`, { cause });
  }
  const abi = typeof loaded === 'object' && loaded !== null && 'abi' in loaded ? loaded.abi : undefined;
  if (abi !== expectedAbi) {
    throw new EngineError(
      'ENGINE_RUNTIME',
      `'${file}' is not an addon of this version (contract ${String(abi)}, expected ${expectedAbi}): ${remedy}.`,
    );
  }
  return loaded as NativeModule;
}

/**
 * Path of the CPU library: beside the addon of an installed package, else inside the npm package onnxruntime-node. Only
 * the file is used; the package's JavaScript is never loaded (decision 0001).
 * @throws EngineError ENGINE_RUNTIME if the npm package is missing.
 */
export function defaultRuntimePath(): string {
  const library = libraries[process.platform] ?? 'libonnxruntime.so.1';
  if (carried) return path.join(carried, library);
  let manifest: string;
  try {
    manifest = require.resolve('onnxruntime-node/package.json');
  } catch (cause) {
    throw new EngineError(
      'ENGINE_RUNTIME',
      'The npm package onnxruntime-node, which holds ONNX Runtime, is not installed: run `npm run setup`, or give the path of another library.',
      { cause },
    );
  }
  const folder = path.join(path.dirname(manifest), 'bin', 'napi-v6');
  return path.join(folder, process.platform, process.arch, library);
}
