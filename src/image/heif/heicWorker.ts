import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { decodePrimary, type Libheif, type Pixels } from './libheif.ts';
import { withMemoryLimit } from './memoryLimit.ts';

/** What the worker gets. */
export interface HeicTask {
  readonly file: Uint8Array;
  /** Bytes that the decoder's memory may have; the WebAssembly engine keeps this limit. */
  readonly memoryBytes: number;
  /** Bytes of the pixels at most. */
  readonly pixelBytes: number;
  readonly premultiplied: boolean;
}

/** Straight RGBA8, upright; or the image could not be decoded. */
export type HeicOutcome = Pixels | { readonly failure: string };

function openLibheif(memoryBytes: number): Libheif {
  const require = createRequire(import.meta.url);
  const wasm = readFileSync(require.resolve('libheif-js/libheif-wasm/libheif.wasm'));
  const open = require('libheif-js/libheif-wasm/libheif.js') as (options: object) => Libheif;
  const silent = () => {};
  return open({ wasmBinary: withMemoryLimit(wasm, memoryBytes), print: silent, printErr: silent });
}

/** Divides colours by alpha. */
function unmultiply(data: Uint8Array): void {
  for (let at = 0; at < data.length; at += 4) {
    const alpha = data[at + 3] ?? 0;
    if (alpha === 0 || alpha === 255) continue;
    for (let i = at; i < at + 3; i += 1) data[i] = Math.min(255, Math.round(((data[i] ?? 0) * 255) / alpha));
  }
}

const task = workerData as HeicTask;
const libheif = openLibheif(task.memoryBytes);
let outcome: HeicOutcome;
try {
  outcome = decodePrimary(libheif, task.file, task.pixelBytes);
  if (task.premultiplied) unmultiply(new Uint8Array(outcome.data));
} catch (error) {
  outcome = { failure: String(error) };
}
parentPort?.postMessage(outcome, 'data' in outcome ? [outcome.data] : []);
