import type { EngineConfig } from '../config/engine.ts';
import type { Engine } from '../engine/engine.ts';
import { LazySelector } from '../engine/selector.ts';
import type { SelectorSpec } from '../engine/types.ts';
import { exists } from '../files.ts';
import { networkFiles } from '../models/layout.ts';
import { findFor, SUBJECT_DECODER, SUBJECT_ENCODER } from '../models/locate.ts';
import type { Observer } from '../models/observer.ts';

interface OpenOptions {
  /** Fetches missing networks at the first use. */
  readonly pull: boolean;
  readonly observer: Observer;
  readonly signal: AbortSignal;
}

/** The two networks and what each is. Both run on the CPU, whatever device runs the other network. */
const PAIR = [
  [SUBJECT_ENCODER, 'encoder'],
  [SUBJECT_DECODER, 'decoder'],
] as const;

const placeOf = (modelsDir: string, role: 'encoder' | 'decoder') =>
  ({ modelsDir, device: 'cpu', role }) as const;

async function areThere(modelsDir: string): Promise<boolean> {
  for (const [name, role] of PAIR) {
    const { manifest } = await findFor(name, placeOf(modelsDir, role));
    const { source, prepared } = networkFiles(modelsDir, manifest);
    if (!(await exists(prepared)) && !(await exists(source))) return false;
  }
  return true;
}

/** The networks that find what points or a box show; nothing is read before their first use. Undefined if they are off. */
export function openSelector(
  engine: Pick<Engine, 'loadSelector' | 'embed' | 'select'>,
  { subjectSelection, modelsDir }: Pick<EngineConfig, 'subjectSelection' | 'modelsDir'>,
  { pull, observer, signal }: OpenOptions,
): LazySelector | undefined {
  if (subjectSelection === 'off') return undefined;
  return new LazySelector(engine, {
    installed: () => areThere(modelsDir),
    mayDownload: pull,
    resolveSpec: async (): Promise<SelectorSpec> => {
      // Imported only if needed, because fetching and preparation are large.
      const { ensureNetwork } = await import('../models/ensure.ts');
      const open = (name: string, role: 'encoder' | 'decoder') =>
        ensureNetwork(name, { ...placeOf(modelsDir, role), pull, observer, signal });
      const encoder = await open(...PAIR[0]);
      const decoder = await open(...PAIR[1]);
      const { width, height, mean, std } = encoder;
      return { encoder: encoder.path, decoder: decoder.path, width, height, mean, std };
    },
  });
}
