import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import { draftFolder, lengthsIn, RECORD } from './files.ts';
import { readKept } from './json.ts';

/**
 * A prepared network as optimised by ONNX Runtime for one processor, cached beside the prepared file. It
 * opens in a fraction of the time, since nothing is optimised again and the weights are memory-mapped
 * (decision 0081). If anything is wrong with it, the prepared file is opened instead.
 */

/** What the copy depends on beside the prepared file. */
export interface CacheKey {
  /** Version of the ONNX Runtime library. */
  readonly onnxruntime: string;
  /** Result of `processorKey`. */
  readonly processor: string;
  /** NetworkSpec.operators; empty without. */
  readonly operators: string;
}

const recordSchema = z.strictObject({
  /** What it was made for and from: `keyOf`. */
  key: z.string(),
  /** Lengths and CRC-32 of its files, by their names. */
  lengths: z.record(z.string(), z.number().int()),
  sums: z.record(z.string(), z.number().int()),
});

interface OptimisedCopy {
  /** For NetworkSpec.path. */
  readonly file: string;
  /** Reads every byte; false if a checksum differs. */
  intact(): Promise<boolean>;
}

const folderOf = (prepared: string) => prepared.replace(/\.onnx$/, '.optimised');
/** Its weights, unless they are all small, lie beside it. */
const graphIn = (folder: string) => path.join(folder, 'network.onnx');

/** Distinguishes versions of a file, whether written or moved into place; 'missing' if there is none. */
const identity = (file: string): Promise<string> =>
  stat(file).then(
    ({ ino, size, mtimeMs }) => `${ino} ${size} ${mtimeMs}`,
    () => 'missing',
  );

const keyOf = async (prepared: string, { onnxruntime, processor, operators }: CacheKey): Promise<string> =>
  JSON.stringify([onnxruntime, processor, operators, await identity(prepared)]);

/** Returns the hash of the processor's name and features; undefined if the system does not report them. */
export async function processorKey(cpuinfo = '/proc/cpuinfo'): Promise<string | undefined> {
  const text = await readFile(cpuinfo, 'utf8').catch(() => '');
  const lines = text.match(/^(model name|flags|Features|CPU part|CPU implementer)\s*:.*$/gm) ?? [];
  if (!lines.some((line) => /^(flags|Features)/.test(line))) return undefined;
  return createHash('sha256')
    .update([...new Set(lines)].sort().join('\n'))
    .digest('hex')
    .slice(0, 16);
}

/**
 * Returns the CRC-32, which detects damage as reliably as needed here, at seven times the speed of SHA-256 on processors
 * without SHA instructions.
 */
async function sumOf(file: string): Promise<number> {
  let crc = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 }))
    crc = crc32(chunk as Buffer, crc);
  return crc;
}

/**
 * Returns the copy of exactly this prepared file under `cacheKey`, if its files have their recorded lengths (reading
 * past the end of a mapped file kills the process). Contents are not read.
 */
export async function findOptimised(
  prepared: string,
  cacheKey: CacheKey,
): Promise<OptimisedCopy | undefined> {
  const folder = folderOf(prepared);
  const record = await readKept(recordSchema, path.join(folder, RECORD));
  if (record?.key !== (await keyOf(prepared, cacheKey))) return undefined;
  const lengths = await lengthsIn(folder).catch(() => undefined);
  if (!isDeepStrictEqual(lengths, record.lengths)) return undefined;
  const intact = async () => {
    for (const [name, sum] of Object.entries(record.sums))
      if ((await sumOf(path.join(folder, name))) !== sum) return false;
    return true;
  };
  return { file: graphIn(folder), intact: () => intact().catch(() => false) };
}

interface OptimisedDraft {
  /** For NetworkSpec.saveTo. */
  readonly file: string;
  /** Moves the saved files into place. */
  keep(): Promise<void>;
  discard(): Promise<void>;
}

/**
 * Returns a place to write a new copy; undefined if the folder is not writable. Every draft must be kept or
 * discarded.
 */
export async function draftOptimised(
  prepared: string,
  cacheKey: CacheKey,
): Promise<OptimisedDraft | undefined> {
  const key = await keyOf(prepared, cacheKey);
  const draft = await draftFolder(folderOf(prepared));
  if (!draft) return undefined;
  const recordOf = async (lengths: Readonly<Record<string, number>>) => {
    const sums: Record<string, number> = {};
    for (const name of Object.keys(lengths)) sums[name] = await sumOf(path.join(draft.folder, name));
    return { key, lengths, sums } satisfies z.infer<typeof recordSchema>;
  };
  return { file: graphIn(draft.folder), keep: () => draft.keep(recordOf), discard: draft.discard };
}
