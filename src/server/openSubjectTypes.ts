import type { EngineConfig } from '../config/engine.ts';
import type { Engine } from '../engine/engine.ts';
import type { NetworkSpec } from '../engine/types.ts';
import { ModelError } from '../models/error.ts';
import { networkFiles } from '../models/layout.ts';
import { findFor, SUBJECT_DETECTOR, specOf } from '../models/locate.ts';
import { readSubjectHead } from '../models/subjectHead.ts';
import type { FetchOptions } from './openNetwork.ts';

interface OpenOptions extends FetchOptions {
  /** Whether an absent classifier is an error, as for a reload after a start that had it. */
  readonly required?: boolean;
}

type TypesConfig = Pick<EngineConfig, 'subjectTypes' | 'modelsDir'>;

/** A network that is missing or cannot be fetched; one that a start can do without does not prevent it. */
export const isAbsent = (error: unknown): error is ModelError =>
  error instanceof ModelError && (error.code === 'MODEL_MISSING' || error.code === 'MODEL_SOURCE');

/** Finds the detector, whose form is that of every processor. */
async function openDetector({ modelsDir }: TypesConfig, options: OpenOptions): Promise<NetworkSpec> {
  // On the CPU, whatever device runs the network.
  const place = { modelsDir, device: 'cpu', role: 'detector' } as const;
  const entry = await findFor(SUBJECT_DETECTOR, place);
  const files = networkFiles(modelsDir, entry.manifest);
  const { verifyPrepared } = await import('../models/verify.ts');
  const good = (await verifyPrepared(files, entry, 'fp32')) === 'ok';
  if (good) return specOf(entry.manifest, files.prepared);
  // Imported only if needed, because fetching and preparation are large.
  const { ensureNetwork } = await import('../models/ensure.ts');
  return ensureNetwork(SUBJECT_DETECTOR, { ...place, ...options });
}

interface OpenedTypes {
  /** Whether subjects can be classified. */
  readonly found: boolean;
  /** Message for the operator if they should be and cannot. */
  readonly notice?: string;
}

/**
 * Finds (or with `pull` fetches) the subject classifier and loads it into the engine. Rejects with ModelError
 * or EngineError for files that are present and invalid, or absent where they are `required`.
 */
export async function openSubjectTypes(
  engine: Pick<Engine, 'loadSubjectTypes'>,
  config: TypesConfig,
  options: OpenOptions,
): Promise<OpenedTypes> {
  if (config.subjectTypes === 'off') return { found: false };
  try {
    const [head, detector] = await Promise.all([readSubjectHead(), openDetector(config, options)]);
    options.signal.throwIfAborted();
    await engine.loadSubjectTypes({ detector, head });
    return { found: true };
  } catch (error) {
    if (options.required || !isAbsent(error)) throw error;
    const notice = `Subject types are off, X-Type is always other for type=auto: ${error.message} Set CUTOUT_SUBJECT_TYPES=off if this is intended.`;
    return { found: false, notice };
  }
}
