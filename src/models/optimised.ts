import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import { draftFolder } from './files.ts';
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

const sumSchema = z.strictObject({ bytes: z.number().int(), crc32: z.number().int() });
const recordSchema = z.strictObject({
  onnxruntime: z.string(),
  processor: z.string(),
  operators: z.string(),
  /** `identity` of the prepared file it was made from. */
  prepared: z.string(),
  graph: sumSchema,
  /** Null for a network whose weights are all small and therefore inside the graph's file. */
  weights: sumSchema.nullable(),
});
type Sum = z.infer<typeof sumSchema>;

interface OptimisedCopy {
  /** For NetworkSpec.path. */
  readonly file: string;
  /** Reads every byte; false if a checksum differs. */
  intact(): Promise<boolean>;
}

const weightsOf = (file: string) => `${file}.data`;
const folderOf = (prepared: string) => prepared.replace(/\.onnx$/, '.optimised');
const inFolder = (folder: string) => ({
  graph: path.join(folder, 'network.onnx'),
  record: path.join(folder, 'record.json'),
});

/** Distinguishes versions of a file, whether written or moved into place; 'missing' if there is none. */
export const identity = (file: string): Promise<string> =>
  stat(file).then(
    ({ ino, size, mtimeMs }) => `${ino} ${size} ${mtimeMs}`,
    () => 'missing',
  );

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
async function sumOf(file: string): Promise<Sum> {
  let [bytes, crc] = [0, 0];
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
    crc = crc32(chunk as Buffer, crc);
    bytes += (chunk as Buffer).length;
  }
  return { bytes, crc32: crc };
}

const holds = async (file: string, wanted: Sum) => {
  const { bytes, crc32: crc } = await sumOf(file);
  return bytes === wanted.bytes && crc === wanted.crc32;
};
const lengthOf = (file: string) =>
  stat(file).then(
    ({ size }) => size,
    () => -1,
  );

/**
 * Returns the copy of exactly this prepared file under `cacheKey`, if its files have their recorded lengths (reading
 * past the end of a mapped file kills the process). Contents are not read.
 */
export async function findOptimised(
  prepared: string,
  cacheKey: CacheKey,
): Promise<OptimisedCopy | undefined> {
  const { graph, record: recordFile } = inFolder(folderOf(prepared));
  const record = await readKept(recordSchema, recordFile);
  if (
    record?.onnxruntime !== cacheKey.onnxruntime ||
    record.processor !== cacheKey.processor ||
    record.operators !== cacheKey.operators ||
    record.prepared !== (await identity(prepared))
  )
    return undefined;
  const { graph: graphSum, weights } = record;
  if ((await lengthOf(graph)) !== graphSum.bytes) return undefined;
  if (weights && (await lengthOf(weightsOf(graph))) !== weights.bytes) return undefined;
  const intact = async () =>
    (await holds(graph, graphSum)) && (!weights || (await holds(weightsOf(graph), weights)));
  return { file: graph, intact: () => intact().catch(() => false) };
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
  const from = await identity(prepared);
  const draft = await draftFolder(folderOf(prepared));
  if (!draft) return undefined;
  const { graph, record } = inFolder(draft.folder);
  const complete = async () => {
    const hasWeights = (await lengthOf(weightsOf(graph))) >= 0;
    const made: z.infer<typeof recordSchema> = {
      ...cacheKey,
      prepared: from,
      graph: await sumOf(graph),
      weights: hasWeights ? await sumOf(weightsOf(graph)) : null,
    };
    await writeFile(record, JSON.stringify(made));
  };
  return { file: graph, keep: () => draft.keep(complete), discard: draft.discard };
}
