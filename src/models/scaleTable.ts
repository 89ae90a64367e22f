import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type QuantisationTable, tableSchema } from '../compiler/quantise/table.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { unsupported } from './error.ts';
import { parseJson } from './json.ts';

/** Reads a network's scale table. Rejects with ModelError `MODEL_UNSUPPORTED` if it has none, or none that can be read. */
export async function readTable({ manifest, folder }: CatalogueEntry): Promise<{
  readonly sha256: string;
  /** Throws ModelError `MODEL_UNSUPPORTED` if it is invalid or was made for another file than the manifest's. */
  readonly parse: () => QuantisationTable;
}> {
  if (manifest.int8 === undefined) throw unsupported(`The network ${manifest.name} has no 8-bit form.`);
  const file = path.join(folder, manifest.int8);
  const title = `The table of 8-bit scales ${file}`;
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw unsupported(`${title} cannot be read.`, cause);
  });
  const parse = () => {
    const table = parseJson(tableSchema, text, title);
    const wanted = manifest.file.sha256;
    if (table.sourceSha256 === wanted) return table;
    throw unsupported(
      `${title} was made for another file: sha256 ${table.sourceSha256}, the manifest has ${wanted}.`,
    );
  };
  return { sha256: createHash('sha256').update(text).digest('hex'), parse };
}
