import type { EngineConfig } from '../config/engine.ts';
import type { Engine } from '../engine/engine.ts';
import type { NativeModule, NetworkSpec } from '../engine/types.ts';
import { ModelError } from '../models/error.ts';
import { networkFiles } from '../models/layout.ts';
import { findFor, SUBJECT_DETECTOR, specOf } from '../models/locate.ts';
import type { Manifest } from '../models/manifest.ts';
import type { Observer } from '../models/observer.ts';
import { choosePrecision, formFor, type PrecisionChoice } from '../models/precision.ts';
import { readSubjectHead } from '../models/subjectHead.ts';

interface OpenOptions {
  readonly pull: boolean;
  readonly observer: Observer;
  readonly signal: AbortSignal;
  /** Whether an absent classifier is an error, as for a reload after a start that had it. */
  readonly required?: boolean;
  /** What the processor computes fastest; undefined: floats. */
  readonly versions?: Pick<ReturnType<NativeModule['versions']>, 'instructionSets' | 'operators'>;
}

type TypesConfig = Pick<EngineConfig, 'subjectTypes' | 'modelsDir'> &
  Partial<Pick<EngineConfig, 'precision' | 'operators'>>;

/** A network that is missing or cannot be fetched; one that a start can do without does not prevent it. */
export const isAbsent = (error: unknown): error is ModelError =>
  error instanceof ModelError && (error.code === 'model_missing' || error.code === 'model_source');

/**
 * bf16 where that is faster and was measured to lose little. CUTOUT_PRECISION and CUTOUT_OPERATORS are for the network of
 * the mattes: here they can only switch it off.
 */
function detectorChoice(
  manifest: Manifest,
  { precision = 'auto', operators = 'auto' }: TypesConfig,
  versions: OpenOptions['versions'],
): Pick<PrecisionChoice, 'precision' | 'operators'> {
  if (!versions || precision === 'fp32') return { precision: 'fp32' };
  const requestedOperators = operators === 'off' ? 'off' : 'auto';
  const { instructionSets, operators: known } = versions;
  return choosePrecision(manifest, {
    ...{ device: 'cpu', requested: 'auto', requestedOperators },
    ...{ instructionSets, operators: known },
  });
}

async function openDetector(
  config: TypesConfig,
  { versions, ...options }: OpenOptions,
): Promise<NetworkSpec> {
  const { modelsDir } = config;
  // On the CPU, whatever device runs the network.
  const place = { modelsDir, device: 'cpu', role: 'detector' } as const;
  const entry = await findFor(SUBJECT_DETECTOR, place);
  const { manifest } = entry;
  const choice = detectorChoice(manifest, config, versions);
  const form = formFor(choice);
  const files = networkFiles(modelsDir, manifest, form);
  const operators = choice.operators === undefined ? {} : { operators: choice.operators };
  const { verifyPrepared } = await import('../models/verify.ts');
  const good = (await verifyPrepared(files, entry, form)) === 'ok';
  if (good) return { ...specOf(manifest, SUBJECT_DETECTOR, files.prepared), ...operators };
  // Imported only if needed, because fetching and preparation are large.
  const { ensureNetwork } = await import('../models/ensure.ts');
  return { ...(await ensureNetwork(SUBJECT_DETECTOR, { ...place, ...options, form })), ...operators };
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
