import type { EngineConfig } from '../config/engine.ts';
import type { Engine } from '../engine/engine.ts';
import { LazySelector } from '../engine/selector.ts';
import type { NativeModule, SelectorSpec } from '../engine/types.ts';
import { exists } from '../files.ts';
import { networkFiles } from '../models/layout.ts';
import { findFor, SUBJECT_DECODER, SUBJECT_ENCODER } from '../models/locate.ts';
import { chooseSelectorPrecision, formFor, questionOf } from '../models/precision.ts';
import type { FetchOptions } from './openNetwork.ts';

/** Missing networks are fetched at the first use. */
interface OpenOptions extends FetchOptions {
  /** What Cutout has operators for. */
  readonly processor: Processor;
}

/** The two networks and what each is. Both run on the CPU, whatever device runs the other network. */
const networkPair = [
  [SUBJECT_ENCODER, 'encoder'],
  [SUBJECT_DECODER, 'decoder'],
] as const;

/** Settings that say where the networks are and how they are computed. */
type Settings = Pick<EngineConfig, 'modelsDir' | 'precision' | 'operators'>;

type Processor = Pick<ReturnType<NativeModule['versions']>, 'operators'>;

/** Where a network is in the form for this processor, and the operators that compute it. */
async function locate([name, role]: (typeof networkPair)[number], settings: Settings, processor: Processor) {
  const place = { modelsDir: settings.modelsDir, device: 'cpu', role } as const;
  const { manifest } = await findFor(name, place);
  const choice = chooseSelectorPrecision(manifest, questionOf({ ...settings, device: 'cpu' }, processor));
  const form = formFor(choice);
  return {
    name,
    place: { ...place, form },
    operators: choice.operators,
    files: networkFiles(settings.modelsDir, manifest, form),
  };
}

async function areThere(settings: Settings, processor: Processor): Promise<boolean> {
  for (const each of networkPair) {
    const { source, prepared } = (await locate(each, settings, processor)).files;
    if (!(await exists(prepared)) && !(await exists(source))) return false;
  }
  return true;
}

/** The networks that find what points or a box show; nothing is read before their first use. Undefined if they are off. */
export function openSelector(
  engine: Pick<Engine, 'loadSelector' | 'embed' | 'select'>,
  settings: Settings & Pick<EngineConfig, 'subjectSelection'>,
  { pull, observer, signal, processor }: OpenOptions,
): LazySelector | undefined {
  if (settings.subjectSelection === 'off') return undefined;
  return new LazySelector(engine, {
    installed: () => areThere(settings, processor),
    mayDownload: pull,
    resolveSpec: async (): Promise<SelectorSpec> => {
      // Imported only if needed, because fetching and preparation are large.
      const { ensureNetwork } = await import('../models/ensure.ts');
      const open = async (each: (typeof networkPair)[number]) => {
        const { name, place, operators } = await locate(each, settings, processor);
        return { ...(await ensureNetwork(name, { ...place, pull, observer, signal })), operators };
      };
      const encoder = await open(networkPair[0]);
      const decoder = await open(networkPair[1]);
      const { width, height, mean, std, operators } = encoder;
      const inBf16 = operators === undefined ? {} : { operators };
      return { encoder: encoder.path, decoder: decoder.path, width, height, mean, std, ...inBf16 };
    },
  });
}
