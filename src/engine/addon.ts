import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isTruncated } from './elf.ts';
import { ABI, EngineError, type NativeModule } from './types.ts';

const require = createRequire(import.meta.url);

/** Where set-up builds the addon, relative to build/ts/src/engine/addon.js. */
export const defaultAddonPath = fileURLToPath(
  new URL('../../../native/Release/cutout.node', import.meta.url),
);

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
    throw new EngineError(
      'ENGINE_RUNTIME',
      missing
        ? `The native addon '${file}' does not exist: build it with \`npm run setup\`.`
        : `The native addon '${file}' cannot be loaded (${reason(cause)}): build it again with \`npm run setup\`.`,
      { cause },
    );
  }
  const abi = typeof loaded === 'object' && loaded !== null && 'abi' in loaded ? loaded.abi : undefined;
  if (abi !== ABI) {
    throw new EngineError(
      'ENGINE_RUNTIME',
      `'${file}' is not an addon of this version (contract ${String(abi)}, expected ${ABI}): build it again with \`npm run setup\`.`,
    );
  }
  return loaded as NativeModule;
}

/**
 * Path of the CPU library inside the npm package onnxruntime-node. Only the file is used; the package's
 * JavaScript is never loaded (docs/decisions/0001-onnxruntime-at-run-time.md). @throws EngineError ENGINE_RUNTIME if the
 * package is missing or has no library for this system.
 */
export function defaultRuntimePath(): string {
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
  return path.join(
    path.dirname(manifest),
    'bin',
    'napi-v6',
    process.platform,
    process.arch,
    'libonnxruntime.so.1',
  );
}
