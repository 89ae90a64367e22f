import type { NetworkSpec } from '../engine/types.ts';
import { ModelError } from './error.ts';
import { findFiles, type Place, specOf } from './locate.ts';
import type { Observer } from './observer.ts';
import { type PullDependencies, prepareAgain, pullDependencies, pullNetwork } from './pull.ts';
import { verifyPrepared, verifySource } from './verify.ts';

interface EnsureOptions extends Place {
  /** Allows fetching a missing network and repairing a damaged one. */
  readonly pull: boolean;
  readonly observer: Observer;
  readonly dependencies?: PullDependencies;
  readonly signal?: AbortSignal;
}

/**
 * Returns what the engine needs to open a network, after verifying the checksum of its file. A network that
 * another version of Cutout prepared is prepared again. Rejects with ModelError, whose message is for the
 * operator.
 */
export async function ensureNetwork(name: string, options: EnsureOptions): Promise<NetworkSpec> {
  const { entry, form, files } = await findFiles(name, options);
  const { manifest } = entry;
  const work = { ...options, form, dependencies: options.dependencies ?? pullDependencies() };
  const remedy = `Run \`cutout models pull ${name}\`.`;

  const state = await verifyPrepared(files, entry, form);
  if (state !== 'ok' && options.pull) await pullNetwork(entry, work);
  else if (state === 'damaged') {
    throw new ModelError('MODEL_DAMAGED', `The network file ${files.prepared} is damaged. ${remedy}`);
  } else if (state !== 'ok') {
    if ((await verifySource(files, manifest)) === 'missing') {
      throw new ModelError('MODEL_MISSING', `The network ${name} is not in ${options.modelsDir}. ${remedy}`);
    }
    await prepareAgain(entry, work);
  }
  return specOf(manifest, files.prepared);
}
