import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { CatalogueEntry } from '../catalogue.ts';
import { ModelError } from '../error.ts';

/** Resolution of the per-channel factors: 2^(n / 8). */
const STEPS_PER_OCTAVE = 8;

/** Bias corrections are counted in this fraction of the output channel's step. */
export const BIAS_STEPS = 32;

const entrySchema = z.strictObject({
  /** Real value of one step of the 8-bit values. */
  scale: z.number().positive(),
  /** 8-bit value that represents 0. */
  zeroPoint: z.number().int().min(0).max(255),
  /** Channel c has the scale `scale` * 2^(channels[c] / 8); without this list all channels have `scale`. */
  channels: z.array(z.number().int()).optional(),
  /** Finer than 8 bits: the sum of `count` 8-bit values, in steps of `scale`, is the value minus `low`. */
  steps: z.strictObject({ count: z.number().int().min(2).max(16), low: z.number() }).optional(),
});

/** models/<name>/int8.json: the result of calibration (decision 0204). */
const tableSchema = z.object({
  /** SHA-256 of the published file it was made for. */
  sourceSha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Names of the convolutions that stay in floats. */
  float: z.array(z.string()),
  /** Keyed by the tensor's name in the published file. */
  tensors: z.record(z.string(), entrySchema),
  /** Keyed by the name of the convolution: correction of its bias, in 1/32 of a step of each output channel. */
  bias: z.record(z.string(), z.array(z.number().int())),
});

export type QuantisationTable = Readonly<z.infer<typeof tableSchema>>;
export type TensorEntry = Readonly<z.infer<typeof entrySchema>>;

/** Real value of one step, per channel. Throws a RangeError if the table has another number of channels. */
export function scalesOf(entry: TensorEntry, channels: number): Float64Array {
  if (entry.channels && entry.channels.length !== channels) {
    throw new RangeError(`the table has ${entry.channels.length} channels where the network has ${channels}`);
  }
  return Float64Array.from(
    { length: channels },
    (_, c) => entry.scale * 2 ** ((entry.channels?.[c] ?? 0) / STEPS_PER_OCTAVE),
  );
}

interface ReadTable {
  readonly table: QuantisationTable;
  readonly sha256: string;
}

const tableFile = ({ manifest, folder }: CatalogueEntry): string => {
  if (manifest.int8 === undefined) {
    throw new ModelError('model_unsupported', `The network ${manifest.name} has no 8-bit form.`);
  }
  return path.join(folder, manifest.int8);
};

async function readBytes(entry: CatalogueEntry): Promise<{ file: string; bytes: Buffer; sha256: string }> {
  const file = tableFile(entry);
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new ModelError('model_unsupported', `The table of 8-bit scales ${file} cannot be read.`, { cause });
  });
  return { file, bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** SHA-256 of a network's scale table. Rejects with ModelError `model_unsupported` if it has none. */
export async function tableSum(entry: CatalogueEntry): Promise<string> {
  return (await readBytes(entry)).sha256;
}

/**
 * Reads a network's scale table. Rejects with ModelError `model_unsupported` if there is none, if it cannot
 * be read, or if it was made for another file than the manifest's.
 */
export async function readTable(entry: CatalogueEntry): Promise<ReadTable> {
  const { file, bytes, sha256 } = await readBytes(entry);
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString('utf8'));
  } catch (cause) {
    throw new ModelError('model_unsupported', `The table of 8-bit scales ${file} is not valid JSON.`, {
      cause,
    });
  }
  const parsed = tableSchema.safeParse(json);
  if (!parsed.success) {
    throw new ModelError(
      'model_unsupported',
      `The table of 8-bit scales ${file} is not valid:\n${z.prettifyError(parsed.error)}`,
    );
  }
  const wanted = entry.manifest.file.sha256;
  if (parsed.data.sourceSha256 !== wanted) {
    throw new ModelError(
      'model_unsupported',
      `The table of 8-bit scales ${file} was made for another file: sha256 ${parsed.data.sourceSha256}, the manifest has ${wanted}.`,
    );
  }
  return { table: parsed.data, sha256 };
}
