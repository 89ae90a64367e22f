import type { EngineConfig } from '../config/engine.ts';
import type { NetworkSize } from '../cutout/profile.ts';
import { defaultRuntimePath, loadAddon } from '../engine/addon.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import { chooseThreads, type Threads } from '../engine/threads.ts';
import type { NetworkInfo, NetworkSpec } from '../engine/types.ts';
import type { Precision } from '../models/layout.ts';
import { findFor, locateNetwork, sizeStepOf } from '../models/locate.ts';
import type { Observer } from '../models/observer.ts';
import { draftOptimised, findOptimised, type Maker, processorKey } from '../models/optimised.ts';
import { choosePrecision, type PrecisionChoice } from '../models/precision.ts';
import { openSubjectTypes } from './openSubjectTypes.ts';

/** The engine with its network loaded and warm. */
export interface OpenedEngine {
  readonly engine: Engine;
  readonly network: NetworkSpec & NetworkSize;
  readonly info: NetworkInfo;
  readonly threads: Threads;
  readonly precision: PrecisionChoice;
  /** Whether subject types can be found out. */
  readonly subjectTypes: boolean;
  /** Version of ONNX Runtime. */
  readonly onnxruntime: string;
  /** Opens into the engine what `unload` dropped, as at the start but without fetching anything. */
  readonly reload: () => Promise<void>;
}

const wish = (value: number | 'auto') => (value === 'auto' ? undefined : value);

export function threadsOf({ workers, threads, device }: EngineConfig): Threads {
  return chooseThreads({ workers: wish(workers), intraOpThreads: wish(threads), provider: device });
}

/** How the configured network computes on this machine. Rejects with ModelError. */
export async function precisionOf(
  { model, device, precision: wish }: EngineConfig,
  instructionSets: readonly string[],
): Promise<PrecisionChoice> {
  const { manifest } = await findFor(model, {});
  return choosePrecision(manifest, { device, wish, instructionSets });
}

/** Opening a network, whatever file it comes from. */
interface Opening {
  readonly engine: Engine;
  readonly located: NetworkSpec;
  readonly precision: Precision;
  readonly maker: Maker | undefined;
  readonly signal: AbortSignal;
}

/** Opens the optimised copy that an earlier start left, while its bytes are checked; undefined without a good one. */
async function openCopy(
  { engine, located, precision, maker, signal }: Opening,
  { modelsDir, device }: EngineConfig,
): Promise<NetworkInfo | undefined> {
  const copy = maker && (await findOptimised(located.path, maker));
  if (!copy) return undefined;
  const opening = engine.load({ ...located, path: copy.file }).catch(() => undefined);
  // Imported meanwhile: what knows of preparation is large.
  const { isPreparedCurrent } = await import('../models/verify.ts');
  const good =
    (await isPreparedCurrent(located.name, { modelsDir, device, precision })) && (await copy.intact());
  const info = await opening;
  signal.throwIfAborted();
  return good ? info : undefined;
}

/** Checks every byte of the prepared network, opens it and leaves an optimised copy for the next start. */
async function openPrepared(
  { engine, located, maker, signal }: Opening,
  ensure: () => Promise<NetworkSpec>,
): Promise<NetworkInfo> {
  const network = await ensure();
  signal.throwIfAborted();
  const draft = maker && (await draftOptimised(located.path, maker));
  if (!draft) return engine.load(network);
  let saved = false;
  try {
    const info = await engine.load({ ...network, saveTo: draft.file });
    saved = true;
    return info;
  } catch {
    // The copy may be what failed, for want of room.
    signal.throwIfAborted();
    return await engine.load(network);
  } finally {
    await (saved ? draft.keep() : draft.discard());
  }
}

/**
 * Finds (or with `pull` fetches) the network, starts the engine's threads, loads and warms it. Rejects with
 * ModelError or EngineError, whose messages are for the operator, and soon after `signal` with its reason.
 */
export async function openEngine(
  config: EngineConfig,
  { pull, observer, signal }: { pull: boolean; observer: Observer; signal: AbortSignal },
): Promise<OpenedEngine> {
  const { modelsDir, device, deviceId, model, runtime } = config;
  const native = loadAddon();
  const choice = await precisionOf(config, native.versions().instructionSets);
  const { precision } = choice;
  const located = await locateNetwork(model, { modelsDir, device, precision });
  const threads = threadsOf(config);
  const engine = createEngine(native, {
    ...threads,
    runtimePath: runtime ?? defaultRuntimePath(),
    provider: device,
    deviceId,
    // The scheduler before it (`FairScheduler`) lets far fewer in.
    queueLimit: 10_000,
    idleReleaseMs: config.idleRelease * 1000,
  });
  const giveUp = () => void engine.close(0);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    signal.throwIfAborted();
    // What a GPU's provider makes of a network cannot be saved so.
    const processor = device === 'cpu' ? await processorKey() : undefined;
    const maker = processor ? { onnxruntime: native.versions().onnxruntime, processor } : undefined;
    const opening = { engine, located, precision, maker, signal };
    const open = async (pull: boolean) => {
      // Small, beside the network's opening; what is wrong with it is told after what is wrong with the network.
      const types = openSubjectTypes(engine, config, { pull, observer, signal });
      types.catch(() => {});
      const info =
        (await openCopy(opening, config)) ??
        (await openPrepared(opening, async () => {
          const { ensureNetwork } = await import('../models/ensure.ts');
          return ensureNetwork(model, { modelsDir, pull, device, precision, observer, signal });
        }));
      return { info, types: await types };
    };
    const { info, types } = await open(pull);
    if (types.notice) observer.notice(types.notice);
    const sizeStep = await sizeStepOf(model, { modelsDir, device, precision });
    const network = { ...located, sizeStep };
    const reload = async () => void (await open(false));
    return {
      engine,
      network,
      info,
      threads,
      precision: choice,
      subjectTypes: types.found,
      onnxruntime: native.versions().onnxruntime,
      reload,
    };
  } catch (error) {
    await engine.close(0);
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
