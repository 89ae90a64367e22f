import { defaultRuntimePath, loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { EngineOptions, NetworkInfo } from '../../src/engine/types.ts';
import { operatorsNetwork, usedOperators } from './paths.ts';

/** The engine of a process that measures it: on the CPU, one worker of `threads` threads, and as many for pixels. */
export const openEngine = (threads: number, changes: Partial<EngineOptions> = {}): Engine =>
  createEngine(loadAddon(), {
    runtimePath: defaultRuntimePath(),
    provider: 'cpu',
    deviceId: 0,
    workers: 1,
    intraOpThreads: threads,
    pixelThreads: threads,
    queueLimit: 1,
    idleReleaseMs: 0,
    ...changes,
  });

/** Loads the prepared IS-Net in `file` under the name `isnet`, with Cutout's operators where it was made for them. */
export function loadIsnet(engine: Engine, file: string): Promise<NetworkInfo> {
  const operators = file === operatorsNetwork() ? usedOperators() : undefined;
  return engine.load({
    ...{ name: 'isnet', path: file, width: 1024, height: 1024, output: 'probability' },
    ...{ mean: [128, 128, 128], std: [256, 256, 256] },
    ...(operators !== undefined && { operators }),
  });
}
