import path from 'node:path';
import type { Form } from '../compiler/form.ts';
import type { Manifest } from './manifest.ts';

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
