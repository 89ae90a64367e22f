import type { NetworkSpec, Provider } from '../engine/types.ts';
import { type CatalogueEntry, findNetwork, installedCatalogue } from './catalogue.ts';
import { ModelError } from './error.ts';
import { networkFiles, type Precision } from './layout.ts';
import type { Manifest } from './manifest.ts';
import type { Observer } from './observer.ts';
import { findOptimised, type Maker, type OptimisedCopy } from './optimised.ts';
import { type PullDependencies, prepareAgain, pullDependencies, pullNetwork } from './pull.ts';
import { isCurrent, readRecord, verifyPrepared, verifySource } from './verify.ts';

/** Floats a device is given: 16-bit ones only where they were published and the device likes them. */
export function precisionFor(manifest: Manifest, device: Provider): Precision {
  return device === 'cpu' ? 'fp32' : manifest.file.precision;
}

/** The network whose findings the subject types are told by (models/types). */
export const SUBJECT_DETECTOR = 'centernet';

export interface EnsureOptions {
  readonly modelsDir: string;
  /** Whether a network that is not there may be fetched, and a damaged one repaired. */
  readonly pull: boolean;
  readonly device: Provider;
  readonly observer: Observer;
  readonly catalogueDir?: string;
  /** What the network is to be used for; `matte` when not given. */
  readonly role?: Manifest['role'];
  readonly dependencies?: PullDependencies;
  readonly signal?: AbortSignal;
}

const specOf = ({ input, output }: Manifest, name: string, path: string): NetworkSpec => {
  const { width, height, mean, std } = input;
  return { name, path, width, height, mean, std, output };
};

/** A network of the catalogue that can be used for this. Rejects with ModelError. */
async function findFor(
  name: string,
  { catalogueDir, role = 'matte' }: Pick<EnsureOptions, 'catalogueDir' | 'role'>,
): Promise<CatalogueEntry> {
  const entry = await findNetwork(catalogueDir ?? installedCatalogue(), name);
  const made = entry.manifest.role;
  if (made === role) return entry;
  const use = made === 'detector' ? 'tells subject types apart and makes no matte' : 'makes mattes';
  throw new ModelError(
    'model_unsupported',
    `The network ${name} ${use}; it cannot be used as a ${role} network.`,
  );
}

/**
 * An optimised copy of the network that this maker can open, if there is one; only a prepared file that is current
 * has one. Its content is still to be checked. Rejects with ModelError for a network that is not in the catalogue.
 */
export async function optimisedNetwork(
  name: string,
  { modelsDir, device, catalogueDir }: Pick<EnsureOptions, 'modelsDir' | 'device' | 'catalogueDir'>,
  maker: Maker,
): Promise<OptimisedCopy | undefined> {
  const { manifest } = await findNetwork(catalogueDir ?? installedCatalogue(), name);
  const precision = precisionFor(manifest, device);
  const files = networkFiles(modelsDir, manifest, precision);
  const record = await readRecord(files);
  return record && isCurrent(record, manifest, precision) ? findOptimised(files.prepared, maker) : undefined;
}

/** Where `ensureNetwork` finds or puts the network; nothing is read but the catalogue. Rejects with ModelError. */
export async function locateNetwork(
  name: string,
  options: Pick<EnsureOptions, 'modelsDir' | 'device' | 'catalogueDir' | 'role'>,
): Promise<NetworkSpec> {
  const { modelsDir, device } = options;
  const { manifest } = await findFor(name, options);
  return specOf(manifest, name, networkFiles(modelsDir, manifest, precisionFor(manifest, device)).prepared);
}

/**
 * What the engine needs to open a network, after checking every byte of its file. A network prepared by
 * another version of Cutout is prepared again. Rejects with ModelError, whose message is for the operator.
 */
export async function ensureNetwork(name: string, options: EnsureOptions): Promise<NetworkSpec> {
  const entry = await findFor(name, options);
  const { manifest } = entry;
  const precision = precisionFor(manifest, options.device);
  const files = networkFiles(options.modelsDir, manifest, precision);
  const work = { ...options, precision, dependencies: options.dependencies ?? pullDependencies() };
  const remedy = `Run \`cutout models pull ${name}\`.`;

  const state = await verifyPrepared(files, manifest, precision);
  if (state !== 'ok' && options.pull) await pullNetwork(entry, work);
  else if (state === 'damaged') {
    throw new ModelError('model_damaged', `The network file ${files.prepared} is damaged. ${remedy}`);
  } else if (state !== 'ok') {
    if ((await verifySource(files, manifest)) === 'missing') {
      throw new ModelError('model_missing', `The network ${name} is not in ${options.modelsDir}. ${remedy}`);
    }
    await prepareAgain(entry, work);
  }
  return specOf(manifest, name, files.prepared);
}
