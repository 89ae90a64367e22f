import type { Config } from '../config/readConfig.ts';
import type { Provider } from '../engine/types.ts';
import { aloneOn } from '../server/deviceQuestion.ts';
import { type OpenedEngine, openEngine } from '../server/openEngine.ts';
import { type Output, withProgress } from './modelsProgress.ts';

/** Opens an engine as a server does. */
export type Open = (
  ...given: Parameters<typeof openEngine>
) => Promise<Pick<OpenedEngine, 'engine' | 'threads'>>;

/**
 * Opens a prepared network as a server with these settings does: on the CPU that measures its forms, on GPUs it runs once in each
 * size of batch. For TensorRT that builds its engines, so that the server's start finds them. Rejects with ModelError or EngineError,
 * so that a network which is said to be prepared for a GPU has run on it.
 */
export async function openOnDevice(
  name: string,
  device: Provider,
  { engine, limits: { memory } }: Pick<Config, 'engine' | 'limits'>,
  { out, signal, open = openEngine }: { out: Output; signal: AbortSignal; open?: Open | undefined },
): Promise<void> {
  const started = performance.now();
  const opened = await withProgress(out, name, (observer) =>
    open(aloneOn(engine, device, name), { pull: false, memory, observer, signal }),
  );
  const gpus = opened.engine.gpus().map(({ id, name }) => `GPU ${id} (${name})`);
  await opened.engine.close(0);
  if (device === 'cpu') return;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const what = device === 'tensorrt' ? `The TensorRT engines of ${name} are ready and have` : `${name} has`;
  out.write(`${what} run on ${gpus.join(', ')} (${seconds} s).\n`);
}
