import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type QuantisationTable, tableSchema } from '../compiler/quantise/table.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { unsupported } from './error.ts';
import { parseJson } from './json.ts';

/** Reads a network's scale table; undefined without one. Rejects with ModelError `MODEL_UNSUPPORTED` if it cannot be read. */
export async function readTable({ manifest, folder }: CatalogueEntry): Promise<
  | {
      readonly sha256: string;
      /** Throws ModelError `MODEL_UNSUPPORTED` if it is invalid or was made for another file than the manifest's. */
      readonly parse: () => QuantisationTable;
    }
  | undefined
> {
  if (manifest.int8 === undefined) return undefined;
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
