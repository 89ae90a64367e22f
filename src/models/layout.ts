import path from 'node:path';
import type { Manifest } from './manifest.ts';

/**
 * Numbers a prepared network computes with: floats of 32 bits for any CPU, integers of 8 bits for CPUs with
 * instructions for them, floats of 16 bits, where they were published, for GPUs.
 */
export type Precision = 'fp32' | 'int8' | 'fp16';

/** Beginning of the names of unfinished files and folders; nothing reads them but the pull that made them. */
export const UNFINISHED = '.pull-';

/** Files of one network under the models folder. A file has its final name only when it is complete. */
export interface NetworkFiles {
  readonly folder: string;
  /** The file as published. */
  readonly source: string;
  readonly prepared: string;
  /** What `prepared` was made from and its sum (PreparedRecord). Written after it. */
  readonly record: string;
  readonly lock: string;
  /** A download that may be resumed, and what it is a part of. */
  readonly part: string;
  readonly partRecord: string;
}

export function networkFiles(
  modelsDir: string,
  manifest: Manifest,
  precision: Precision = 'fp32',
): NetworkFiles {
  const folder = path.join(modelsDir, manifest.name);
  const prepared = precision === 'fp32' ? 'prepared' : `prepared.${precision}`;
  return {
    folder,
    source: path.join(folder, `source.${manifest.file.format.name}`),
    prepared: path.join(folder, `${prepared}.onnx`),
    record: path.join(folder, `${prepared}.json`),
    lock: path.join(folder, '.lock'),
    part: path.join(folder, `${UNFINISHED}part`),
    partRecord: path.join(folder, `${UNFINISHED}part.json`),
  };
}
