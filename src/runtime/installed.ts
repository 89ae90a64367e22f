import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { RuntimeError } from './error.ts';
import { cudaRuntime } from './packages.ts';

/** Written last, so that a folder with it is complete. Paths are relative to the runtime's folder. */
export const recordSchema = z.strictObject({
  name: z.literal('cuda'),
  onnxruntime: z.string(),
  libraries: z.array(z.string()),
  wheels: z.array(z.strictObject({ name: z.string(), version: z.string(), sha256: z.string() })),
  /** Of every file but the record. */
  files: z.array(z.strictObject({ path: z.string(), bytes: z.number().int() })),
});

export type RuntimeRecord = Readonly<z.infer<typeof recordSchema>>;

export const RECORD = 'runtime.json';

export interface InstalledRuntime {
  readonly folder: string;
  readonly record: RuntimeRecord;
  readonly bytes: number;
  /** Whether it has the versions that this release of Cutout installs. */
  readonly current: boolean;
  /** For EngineOptions. */
  readonly runtimePath: string;
  readonly libraries: readonly string[];
}

export const runtimeFolder = (runtimesDir: string): string => path.join(runtimesDir, cudaRuntime.name);

/**
 * The runtime that `cutout runtime install cuda` made; undefined if there is none. Lengths of files are checked,
 * contents are not. Rejects with RuntimeError `runtime_damaged`.
 */
export async function findRuntime(runtimesDir: string): Promise<InstalledRuntime | undefined> {
  const folder = runtimeFolder(runtimesDir);
  const text = await readFile(path.join(folder, RECORD), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const damaged = (what: string, cause?: unknown) =>
    new RuntimeError(
      'runtime_damaged',
      `The runtime in ${folder} is damaged: ${what}. Run \`cutout runtime install cuda\` to install it again.`,
      { cause },
    );
  let record: RuntimeRecord;
  try {
    record = recordSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw damaged(`${RECORD} cannot be read`, cause);
  }
  let bytes = 0;
  for (const file of record.files) {
    const size = await stat(path.join(folder, file.path)).then(
      (found) => found.size,
      () => undefined,
    );
    if (size !== file.bytes) throw damaged(`${file.path} is ${size === undefined ? 'missing' : 'cut short'}`);
    bytes += file.bytes;
  }
  const wanted = cudaRuntime.wheels.map(({ name, version, sha256 }) => `${name} ${version} ${sha256}`);
  const given = record.wheels.map(({ name, version, sha256 }) => `${name} ${version} ${sha256}`);
  return {
    folder,
    record,
    bytes,
    current: wanted.join() === given.join(),
    runtimePath: path.join(folder, record.onnxruntime),
    libraries: record.libraries.map((library) => path.join(folder, library)),
  };
}
