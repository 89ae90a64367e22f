import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { NetworkSpec, Provider } from '../engine/types.ts';
import { type CatalogueEntry, findNetwork, installedCatalogue } from './catalogue.ts';
import { ModelError } from './error.ts';
import { networkFiles, type Precision } from './layout.ts';
import type { Manifest } from './manifest.ts';

/** The network whose findings the subject types are told by (models/types). */
export const SUBJECT_DETECTOR = 'centernet';

/** Where the files of networks are, and for what. */
export interface Place {
  readonly modelsDir: string;
  readonly device: Provider;
  /** What it is to compute with (precision.ts); when not given, the device's floats. */
  readonly precision?: Precision;
  readonly catalogueDir?: string;
  /** What the network is to be used for; `matte` when not given. */
  readonly role?: Manifest['role'];
}

/** Floats a device is given: 16-bit ones only where they were published and the device likes them. */
export function precisionFor(manifest: Manifest, device: Provider): Precision {
  return device === 'cpu' ? 'fp32' : manifest.file.precision;
}

export const specOf = ({ input, output, taughtOn }: Manifest, name: string, path: string): NetworkSpec => {
  const { width, height, mean, std } = input;
  return { name, path, width, height, mean, std, output, taughtOn };
};

/** A network of the catalogue that can be used for this. Rejects with ModelError. */
export async function findFor(
  name: string,
  { catalogueDir, role = 'matte' }: Pick<Place, 'catalogueDir' | 'role'>,
): Promise<CatalogueEntry> {
  const entry = await findNetwork(catalogueDir ?? installedCatalogue(), name);
  const made = entry.manifest.role;
  if (made === role) return entry;
  const use = made === 'detector' ? 'determines subject types and makes no matte' : 'makes mattes';
  throw new ModelError(
    'model_unsupported',
    `The network ${name} ${use}; it cannot be used as a ${role} network.`,
  );
}

/** Where `ensureNetwork` finds or puts the network; nothing is read but the catalogue. Rejects with ModelError. */
export async function locateNetwork(name: string, options: Place): Promise<NetworkSpec> {
  const { modelsDir, device } = options;
  const { manifest } = await findFor(name, options);
  const precision = options.precision ?? precisionFor(manifest, device);
  return specOf(manifest, name, networkFiles(modelsDir, manifest, precision).prepared);
}

/** Of PreparedRecord (prepare.ts), read without the rest of preparation, which takes long to import. */
const sizeSchema = z.object({ sizeStep: z.number().int().min(0) });

/**
 * What the sides of an image must be multiples of for the prepared network to run at other sizes than its usual one;
 * 0 when it has one size or its record says nothing. Rejects with ModelError for a network that is not in the catalogue.
 */
export async function sizeStepOf(name: string, options: Place): Promise<number> {
  const { modelsDir, device } = options;
  const { manifest } = await findFor(name, options);
  const { record } = networkFiles(modelsDir, manifest, options.precision ?? precisionFor(manifest, device));
  try {
    return sizeSchema.parse(JSON.parse(await readFile(record, 'utf8'))).sizeStep;
  } catch {
    return 0;
  }
}
