import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
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
export type HeicOutcome =
  | { readonly data: ArrayBuffer; readonly width: number; readonly height: number }
  | { readonly failure: string };

/** Part of libheif's C interface; pointers are numbers, structures are returned through the first one. */
interface Libheif {
  readonly HEAPU8: Uint8Array;
  _malloc(bytes: number): number;
  _heif_context_alloc(): number;
  _heif_context_read_from_memory_without_copy(
    error: number,
    context: number,
    bytes: number,
    length: number,
    options: number,
  ): void;
  _heif_context_get_primary_image_handle(error: number, context: number, handle: number): void;
  _heif_decode_image(
    error: number,
    handle: number,
    image: number,
    colourSpace: number,
    chroma: number,
    options: number,
  ): void;
  _heif_image_get_primary_width(image: number): number;
  _heif_image_get_primary_height(image: number): number;
  _heif_image_get_plane_readonly2(image: number, channel: number, stride: number): number;
}

/** Constants of libheif/heif.h. */
const [RGB, INTERLEAVED_RGBA, INTERLEAVED] = [1, 11, 10] as const;

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

/** Decodes the primary image: its transformations are applied, its alpha is part of the result. */
function decode(libheif: Libheif, { file, pixelBytes, premultiplied }: HeicTask): HeicOutcome {
  const allocate = (bytes: number): number => {
    const pointer = libheif._malloc(bytes);
    if (pointer === 0) throw new Error('out of memory');
    return pointer;
  };
  const [error, out, bytes] = [allocate(16), allocate(8), allocate(file.length)];
  // The memory moves when it grows, so views are made anew.
  const word = (pointer: number) => new DataView(libheif.HEAPU8.buffer).getUint32(pointer, true);
  const check = () => {
    if (word(error) !== 0) throw new Error(`libheif: error ${word(error)}.${word(error + 4)}`);
  };
  libheif.HEAPU8.set(file, bytes);
  const context = libheif._heif_context_alloc();
  libheif._heif_context_read_from_memory_without_copy(error, context, bytes, file.length, 0);
  check();
  libheif._heif_context_get_primary_image_handle(error, context, out);
  check();
  libheif._heif_decode_image(error, word(out), out, RGB, INTERLEAVED_RGBA, 0);
  check();
  const image = word(out);
  const width = libheif._heif_image_get_primary_width(image);
  const height = libheif._heif_image_get_primary_height(image);
  const rowBytes = width * 4;
  if (!(rowBytes > 0 && height > 0 && rowBytes * height <= pixelBytes)) throw new Error('another size');
  const plane = libheif._heif_image_get_plane_readonly2(image, INTERLEAVED, out);
  if (plane === 0) throw new Error('no pixels');
  const stride = word(out);
  const data = new Uint8Array(rowBytes * height);
  for (let y = 0; y < height; y += 1) {
    const from = plane + y * stride;
    data.set(libheif.HEAPU8.subarray(from, from + rowBytes), y * rowBytes);
  }
  if (premultiplied) unmultiply(data);
  return { data: data.buffer, width, height };
}

const task = workerData as HeicTask;
const libheif = openLibheif(task.memoryBytes);
let outcome: HeicOutcome;
try {
  outcome = decode(libheif, task);
} catch (error) {
  outcome = { failure: String(error) };
}
parentPort?.postMessage(outcome, 'data' in outcome ? [outcome.data] : []);
