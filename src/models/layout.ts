import path from 'node:path';
import type { Manifest } from './manifest.ts';

/**
 * Number format of a prepared network: float32 for every CPU, int8 for CPUs with dot-product instructions, bf16 for
 * CPUs with those of bf16, float16 for GPUs where the network was published in it.
 */
export type Precision = 'fp32' | 'bf16' | 'int8' | 'fp16';

/**
 * What a network is prepared as. `int8` has ONNX's standard operators only; in `int8-operators` the 8-bit part is one
 * operator of Cutout (lowPrecision/convert.ts), for processors with a kernel for it. `bf16` always has such an operator
 * (lowPrecision/bf16.ts). `gpu` is a program for Cutout's own kernels on a GPU (lowPrecision/gpu.ts), or what ONNX
 * Runtime's provider for CUDA takes where the network cannot be one.
 */
export type Form = Precision | 'int8-operators' | 'gpu';

export const FORMS = [
  'fp32',
  'bf16',
  'int8-operators',
  'int8',
  'fp16',
  'gpu',
] as const satisfies readonly Form[];

export const precisionOfForm = (form: Form): Precision =>
  form === 'int8-operators' ? 'int8' : form === 'gpu' ? 'fp16' : form;

/** Prefix of unfinished files and folders; only the pull that made them reads them. */
export const UNFINISHED = '.pull-';

/** Files of one network in the models folder. A file has its final name only when it is complete. */
export interface NetworkFiles {
  readonly folder: string;
  /** The file as published. */
  readonly source: string;
  readonly prepared: string;
  /** The PreparedRecord of `prepared`, written after it. */
  readonly record: string;
  readonly lock: string;
  /** An interrupted download and the description of what it belongs to; it may be resumed. */
  readonly part: string;
  readonly partRecord: string;
}

export function networkFiles(modelsDir: string, manifest: Manifest, form: Form = 'fp32'): NetworkFiles {
  const folder = path.join(modelsDir, manifest.name);
  const prepared = form === 'fp32' ? 'prepared' : `prepared.${form}`;
  return {
    folder,
    source: path.join(folder, `source.${manifest.file.format.name}`),
    prepared: path.join(folder, form === 'gpu' ? prepared : `${prepared}.onnx`),
    record: path.join(folder, `${prepared}.json`),
    lock: path.join(folder, '.lock'),
    part: path.join(folder, `${UNFINISHED}part`),
    partRecord: path.join(folder, `${UNFINISHED}part.json`),
  };
}
