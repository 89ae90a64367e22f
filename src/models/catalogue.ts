import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeOf } from '../files.ts';
import { ModelError, unsupported } from './error.ts';
import { type Manifest, readManifest } from './manifest.ts';

/** Returns the path of this installation's `models/` folder, relative to build/ts/src/models. */
export function installedCatalogue(): string {
  return fileURLToPath(new URL('../../../../models', import.meta.url));
}

export interface CatalogueEntry {
  readonly manifest: Manifest;
  /** Folder of the manifest; the path of a `file` source is relative to it. */
  readonly folder: string;
}

/** Folders with networks. Where several have one of the same name, the first folder's counts. */
export type Catalogue = string | readonly string[];

/** Returns the networks of an installation, and after them those that were added to its models folder (add.ts). */
export const catalogueWith = (
  modelsDir: string,
  catalogueDir: string = installedCatalogue(),
): readonly string[] => [catalogueDir, modelsDir];

/** Whether the network was added to the models folder by its operator. */
export const isAdded = (modelsDir: string, { manifest, folder }: CatalogueEntry): boolean =>
  path.resolve(folder) === path.resolve(modelsDir, manifest.name);

async function readEntry(folder: string, name: string): Promise<CatalogueEntry> {
  const file = path.join(folder, 'model.json');
  const manifest = await readManifest(file);
  if (manifest.name !== name) {
    throw unsupported(`The manifest ${file} is named ${manifest.name}, unlike its folder.`);
  }
  return { manifest, folder };
}

/** Folders of all networks by their names, sorted. */
async function foldersOf(catalogue: Catalogue): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const dir of [catalogue].flat()) {
    const there = await readdir(dir).catch((error: unknown) => {
      // The models folder is made by the first pull.
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    });
    for (const name of there) {
      const folder = path.join(dir, name);
      const manifest = await stat(path.join(folder, 'model.json')).catch(() => undefined);
      if (manifest?.isFile() && !found.has(name)) found.set(name, folder);
    }
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns all networks of a catalogue, by name. Rejects with ModelError for an invalid manifest. */
export async function listCatalogue(catalogue: Catalogue): Promise<CatalogueEntry[]> {
  const found = await foldersOf(catalogue);
  return Promise.all([...found].map(([name, folder]) => readEntry(folder, name)));
}

/**
 * Returns one network of a catalogue. Rejects with ModelError `MODEL_UNKNOWN`, whose message lists the known names and says how
 * another one is added.
 */
export async function findNetwork(catalogue: Catalogue, name: string): Promise<CatalogueEntry> {
  const known = await foldersOf(catalogue);
  const folder = known.get(name);
  if (folder !== undefined) return readEntry(folder, name);
  throw new ModelError(
    'MODEL_UNKNOWN',
    `There is no network named "${name}"; there are ${[...known.keys()].join(', ')}. Another one is added from its ONNX file: \`cutout models add FILE\`.`,
  );
}
