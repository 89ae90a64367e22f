import { defaultRuntimePath, loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { EngineOptions, NetworkInfo } from '../../src/engine/types.ts';
import { findNetwork, installedCatalogue } from '../../src/models/catalogue.ts';
import { specOf } from '../../src/models/locate.ts';
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

/** Loads the prepared network in `file`, with Cutout's operators where it was made for them. */
export async function loadNetwork(engine: Engine, name: string, file: string): Promise<NetworkInfo> {
  const { manifest } = await findNetwork(installedCatalogue(), name);
  const operators = file === operatorsNetwork(name) ? usedOperators() : undefined;
  return engine.load({ ...specOf(manifest, name, file), ...(operators !== undefined && { operators }) });
}

export const loadIsnet = (engine: Engine, file: string): Promise<NetworkInfo> =>
  loadNetwork(engine, 'isnet', file);
