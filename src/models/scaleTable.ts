import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { type QuantisationTable, tableSchema } from '../compiler/quantise/table.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { ModelError } from './error.ts';

interface ReadTable {
  readonly table: QuantisationTable;
  readonly sha256: string;
}

const tableFile = ({ manifest, folder }: CatalogueEntry): string => {
  if (manifest.int8 === undefined) {
    throw new ModelError('MODEL_UNSUPPORTED', `The network ${manifest.name} has no 8-bit form.`);
  }
  return path.join(folder, manifest.int8);
};

async function readBytes(entry: CatalogueEntry): Promise<{ file: string; bytes: Buffer; sha256: string }> {
  const file = tableFile(entry);
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new ModelError('MODEL_UNSUPPORTED', `The table of 8-bit scales ${file} cannot be read.`, { cause });
  });
  return { file, bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** Returns the SHA-256 of a network's scale table. Rejects with ModelError `MODEL_UNSUPPORTED` if it has none. */
export async function tableSum(entry: CatalogueEntry): Promise<string> {
  return (await readBytes(entry)).sha256;
}

/**
 * Reads a network's scale table. Rejects with ModelError `MODEL_UNSUPPORTED` if there is none, if it cannot
 * be read, or if it was made for another file than the manifest's.
 */
export async function readTable(entry: CatalogueEntry): Promise<ReadTable> {
  const { file, bytes, sha256 } = await readBytes(entry);
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString('utf8'));
  } catch (cause) {
    throw new ModelError('MODEL_UNSUPPORTED', `The table of 8-bit scales ${file} is not valid JSON.`, {
      cause,
    });
  }
  const parsed = tableSchema.safeParse(json);
  if (!parsed.success) {
    throw new ModelError(
      'MODEL_UNSUPPORTED',
      `The table of 8-bit scales ${file} is not valid:\n${z.prettifyError(parsed.error)}`,
    );
  }
  const wanted = entry.manifest.file.sha256;
  if (parsed.data.sourceSha256 !== wanted) {
    throw new ModelError(
      'MODEL_UNSUPPORTED',
      `The table of 8-bit scales ${file} was made for another file: sha256 ${parsed.data.sourceSha256}, the manifest has ${wanted}.`,
    );
  }
  return { table: parsed.data, sha256 };
}
