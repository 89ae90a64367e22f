import path from 'node:path';
import { defaultRuntimePath, loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { EngineOptions, NetworkInfo, NetworkSpec } from '../../src/engine/types.ts';
import { findNetwork, installedCatalogue } from '../../src/models/catalogue.ts';
import { specOf } from '../../src/models/locate.ts';
import { draftOptimised, findOptimised, processorKey } from '../../src/models/optimised.ts';
import { bf16Network, operatorsNetwork, usedOperators } from './paths.ts';

/** The engine of a process that measures it: on the CPU, one worker of `threads` threads, and as many for pixels. */
export const openEngine = (threads: number, changes: Partial<EngineOptions> = {}): Engine =>
  createEngine(loadAddon(), {
    runtimePath: defaultRuntimePath(),
    provider: 'cpu',
    deviceIds: [0],
    workers: 1,
    intraOpThreads: threads,
    pixelThreads: threads,
    queueLimit: 1,
    idleReleaseMs: 0,
    ...changes,
  });

/** Instruction set of Cutout's operators for a prepared file; undefined for one without any. */
const operatorsFor = (name: string, file: string): string | undefined =>
  file === operatorsNetwork(name)
    ? usedOperators()
    : file === bf16Network(name)
      ? usedOperators('bf16')
      : undefined;

/** The prepared network in `file`, with Cutout's operators where it was made for them. */
async function preparedSpec(name: string, file: string): Promise<NetworkSpec> {
  const { manifest } = await findNetwork(installedCatalogue(), name);
  const operators = operatorsFor(name, file);
  return { ...specOf(manifest, file), ...(operators !== undefined && { operators }) };
}

/** Loads a prepared file of the network `name`, under that name or another. */
export async function loadNetwork(
  engine: Engine,
  name: string,
  file: string,
  as = name,
): Promise<NetworkInfo> {
  return engine.load({ ...(await preparedSpec(name, file)), name: as });
}

/**
 * Loads the optimised copy of a prepared network, as a server does from its second start on: it takes less memory than
 * the prepared file. The first call for a file makes the copy.
 */
export async function loadOptimised(engine: Engine, name: string, file: string): Promise<NetworkInfo> {
  const spec = await preparedSpec(name, file);
  const processor = await processorKey();
  if (processor === undefined) return engine.load(spec);
  const { onnxruntime } = loadAddon().versions();
  const cacheKey = { onnxruntime, processor, operators: spec.operators ?? '' };
  const copy = await findOptimised(file, cacheKey);
  if (copy) return engine.load({ ...spec, path: copy.file });
  const draft = await draftOptimised(file, cacheKey);
  if (!draft) throw new Error(`${path.dirname(file)} is not writable`);
  const info = await engine.load({ ...spec, saveTo: draft.file });
  await draft.keep();
  return info;
}

export const loadIsnet = (engine: Engine, file: string): Promise<NetworkInfo> =>
  loadNetwork(engine, 'isnet', file);
