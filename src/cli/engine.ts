import { stat } from 'node:fs/promises';
import type { Config } from '../config.ts';
import { defaultRuntimePath, loadAddon } from '../engine/addon.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import { chooseThreads, type Threads } from '../engine/threads.ts';
import type { NetworkInfo, NetworkSpec } from '../engine/types.ts';
import { configureLibvips } from '../image/libvips.ts';
import { CONTRACT_LIMITS, type ProbeLimits } from '../image/types.ts';
import { ensureNetwork, locateNetwork } from '../models/ensure.ts';
import type { Observer } from '../models/observer.ts';

export interface OpenEngine {
  readonly engine: Engine;
  readonly network: NetworkSpec;
  readonly info: NetworkInfo;
  readonly threads: Threads;
}

const wish = (value: number | 'auto') => (value === 'auto' ? undefined : value);

export function threadsOf({ workers, threads, device }: Config): Threads {
  return chooseThreads({ workers: wish(workers), intraOpThreads: wish(threads), provider: device });
}

/** What may be sent: the contract's types and those the operator allows. Blocks all other loaders. */
export function configureImages(config: Config): ProbeLimits {
  const formats = [...CONTRACT_LIMITS.formats, ...config.inputFormats];
  configureLibvips({ formats });
  return { ...CONTRACT_LIMITS, formats };
}

/** Tells one version of a file from another that was moved into its place. */
const identity = (file: string): Promise<string> =>
  stat(file).then(
    ({ ino, mtimeMs }) => `${ino} ${mtimeMs}`,
    () => 'missing',
  );

/**
 * Finds (or with `pull` fetches) the network, starts the engine's threads, loads and warms it. Rejects with
 * ModelError or EngineError, whose messages are for the operator.
 */
export async function openEngine(
  config: Config,
  { pull, observer, signal }: { pull: boolean; observer: Observer; signal: AbortSignal },
): Promise<OpenEngine> {
  const { modelsDir, device, deviceId, model, runtime, queueLimit } = config;
  const native = loadAddon();
  const located = await locateNetwork(model, { modelsDir, device });
  const threads = threadsOf(config);
  const engine = createEngine(native, {
    ...threads,
    runtimePath: runtime ?? defaultRuntimePath(),
    provider: device,
    deviceId,
    // The gate before it (Admission) lets far fewer in; 0 there means that all may wait.
    queueLimit: queueLimit || 10_000,
    idleReleaseMs: config.idleRelease * 1000,
  });
  try {
    // Opening a file takes longer than checking it: both at once. What the check says counts first; a file it
    // replaced is opened again.
    const before = await identity(located.path);
    const early = before === 'missing' ? undefined : engine.load(located);
    early?.catch(() => {});
    const network = await ensureNetwork(model, { modelsDir, pull, device, observer, signal });
    signal.throwIfAborted();
    const same = early !== undefined && (await identity(network.path)) === before;
    return { engine, network, info: await (same ? early : engine.load(network)), threads };
  } catch (error) {
    await engine.close(0);
    throw error;
  }
}
