import type { Config } from '../config/readConfig.ts';
import { PROFILES } from '../cutout/qualityProfile.ts';
import { type OpenedEngine, openEngine } from '../server/openEngine.ts';
import { type Output, progressOn } from './modelsProgress.ts';

/** Opens an engine as a server does. */
export type Open = (
  ...given: Parameters<typeof openEngine>
) => Promise<Pick<OpenedEngine, 'engine' | 'threads'>>;

/**
 * Builds the TensorRT engines of a prepared network, one for each size of batch that a server with these settings
 * opens, so that its start finds them. Rejects with ModelError or EngineError.
 */
export async function buildEngines(
  name: string,
  { engine, cutout }: Pick<Config, 'engine' | 'cutout'>,
  { out, signal, open = openEngine }: { out: Output; signal: AbortSignal; open?: Open | undefined },
): Promise<void> {
  const alone = {
    ...engine,
    device: 'tensorrt',
    model: name,
    secondModel: 'off',
    subjectTypes: 'off',
    subjectSelection: 'off',
  } as const;
  const observer = progressOn(out, name);
  const started = performance.now();
  try {
    const opened = await open(alone, PROFILES[cutout.profile], { pull: false, observer, signal });
    const gpu = opened.engine.gpu()?.name ?? 'the GPU';
    await opened.engine.close(0);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    out.write(`The TensorRT engines of ${name} for ${gpu} are ready (${seconds} s).\n`);
  } finally {
    observer.done();
  }
}
