import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ModelError } from './error.ts';
import { type Manifest, readManifest } from './manifest.ts';

/** Path of this installation's `models/` folder, relative to build/ts/src/models. */
export function installedCatalogue(): string {
  return fileURLToPath(new URL('../../../../models', import.meta.url));
}

export interface CatalogueEntry {
  readonly manifest: Manifest;
  /** Folder of the manifest; the path of a `file` source is relative to it. */
  readonly folder: string;
}

async function readEntry(catalogueDir: string, name: string): Promise<CatalogueEntry> {
  const folder = path.join(catalogueDir, name);
  const file = path.join(folder, 'model.json');
  const manifest = await readManifest(file);
  if (manifest.name !== name) {
    throw new ModelError(
      'model_unsupported',
      `The manifest ${file} is named ${manifest.name}, unlike its folder.`,
    );
  }
  return { manifest, folder };
}

async function names(catalogueDir: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await readdir(catalogueDir)) {
    const manifest = await stat(path.join(catalogueDir, name, 'model.json')).catch(() => undefined);
    if (manifest?.isFile()) found.push(name);
  }
  return found.sort();
}

/** All networks of a catalogue, by name. Rejects with ModelError for an invalid manifest. */
export async function listCatalogue(catalogueDir: string): Promise<CatalogueEntry[]> {
  const found = await names(catalogueDir);
  return Promise.all(found.map((name) => readEntry(catalogueDir, name)));
}

/** One network of a catalogue. Rejects with ModelError `model_unknown`, whose message lists the known names. */
export async function findNetwork(catalogueDir: string, name: string): Promise<CatalogueEntry> {
  const known = await names(catalogueDir);
  if (known.includes(name)) return readEntry(catalogueDir, name);
  throw new ModelError(
    'model_unknown',
    `There is no network named "${name}"; there are ${known.join(', ')}.`,
  );
}
