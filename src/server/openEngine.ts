import type { Form } from '../compiler/form.ts';
import type { EngineConfig } from '../config/engine.ts';
import type { NetworkSize, Profile } from '../cutout/qualityProfile.ts';
import { defaultRuntimePath, loadAddon } from '../engine/addon.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import type { LazySelector } from '../engine/selector.ts';
import { chooseThreads, type Threads } from '../engine/threads.ts';
import type { NativeModule, NetworkInfo, NetworkSpec, RuntimeMessage } from '../engine/types.ts';
import {
  type ConfiguredModels,
  findFor,
  locateNetwork,
  preparedFacts,
  secondModelOf,
} from '../models/locate.ts';
import type { Observer } from '../models/observer.ts';
import { draftOptimised, findOptimised, processorKey } from '../models/optimised.ts';
import { choosePrecision, formFor, type PrecisionChoice, refusedText } from '../models/precision.ts';
import { loadWithNotices } from './loadNotices.ts';
import type { Opening } from './networkOpening.ts';
import { openSelector } from './openSelector.ts';
import { isAbsent, openSubjectTypes } from './openSubjectTypes.ts';

/** The engine with its network loaded and warmed up. */
export interface OpenedEngine {
  readonly engine: Engine;
  readonly network: NetworkSpec & NetworkSize;
  /** The loaded second network; undefined: the first one runs alone. */
  readonly second: NetworkSpec | undefined;
  readonly info: NetworkInfo;
  readonly threads: Threads;
  readonly precision: PrecisionChoice;
  /** Whether subjects can be classified. */
  readonly subjectTypes: boolean;
  /** Finds what points or a box show; absent if that is off. */
  readonly selector?: LazySelector | undefined;
  /** Version of ONNX Runtime. */
  readonly onnxruntime: string;
  /** Loads what `unload` dropped, as at the start but without fetching anything. */
  readonly reload: () => Promise<void>;
}

const unlessAuto = (value: number | 'auto') => (value === 'auto' ? undefined : value);

/** Images in one run: batches by default on a GPU only. */
const maxBatchOf = ({ batchMax, device }: Pick<EngineConfig, 'batchMax' | 'device'>): number =>
  unlessAuto(batchMax) ?? (device === 'cpu' ? 1 : 8);

/** The GPUs of the settings. Where the driver shows none, number 0: opening it says why. */
export function deviceIdsOf({
  device,
  deviceIds,
}: Pick<EngineConfig, 'device' | 'deviceIds'>): readonly number[] {
  if (device === 'cpu') return [0];
  if (deviceIds !== 'all') return deviceIds;
  return Array.from({ length: Math.max(1, loadAddon().gpuCount()) }, (_, id) => id);
}

export function threadsOf(config: EngineConfig): Threads {
  const { workers, threads, device, batchMax } = config;
  return chooseThreads({
    workers: unlessAuto(workers),
    intraOpThreads: unlessAuto(threads),
    provider: device,
    maxBatch: maxBatchOf({ batchMax, device }),
    devices: deviceIdsOf(config).length,
  });
}

/** A network's files, in the form for this machine. */
interface Located {
  readonly located: NetworkSpec;
  readonly choice: PrecisionChoice;
  readonly form: Form;
}

/** Where a network's files are. Rejects with ModelError. */
async function locate(
  name: string,
  { modelsDir, device, precision: requested, operators: requestedOperators }: EngineConfig,
  { instructionSets, operators: known }: ReturnType<NativeModule['versions']>,
): Promise<Located> {
  const { manifest } = await findFor(name, { modelsDir });
  const question = { device, requested, requestedOperators, instructionSets, operators: known };
  const choice = choosePrecision(manifest, question);
  const form = formFor(choice);
  const { operators } = choice;
  const located = await locateNetwork(name, { modelsDir, device, form });
  return { choice, form, located: { ...located, ...(operators !== undefined && { operators }) } };
}

/**
 * Opens the optimised copy that an earlier start saved, while its checksum is verified; undefined without a
 * valid one.
 */
async function openCopy(
  { engine, located, form, cacheKey, signal }: Opening,
  { modelsDir, device }: EngineConfig,
): Promise<NetworkInfo | undefined> {
  const copy = cacheKey && (await findOptimised(located.path, cacheKey));
  if (!copy) return undefined;
  const opening = engine.load({ ...located, path: copy.file }).catch(() => undefined);
  // Imported meanwhile, because the code of preparation is large.
  const { isPreparedCurrent } = await import('../models/verify.ts');
  const good = (await isPreparedCurrent(located.name, { modelsDir, device, form })) && (await copy.intact());
  const info = await opening;
  signal.throwIfAborted();
  return good ? info : undefined;
}

/** Verifies the prepared network, opens it and saves an optimised copy for the next start. */
async function openPrepared(
  { engine, located, cacheKey, signal }: Opening,
  ensure: () => Promise<NetworkSpec>,
): Promise<NetworkInfo> {
  const network = { ...located, ...(await ensure()) };
  signal.throwIfAborted();
  const draft = cacheKey && (await draftOptimised(located.path, cacheKey));
  if (!draft) return engine.load(network);
  let saved = false;
  try {
    const info = await engine.load({ ...network, saveTo: draft.file });
    saved = true;
    return info;
  } catch {
    // Saving the copy may be what failed, for lack of disk space.
    signal.throwIfAborted();
    return await engine.load(network);
  } finally {
    await (saved ? draft.keep() : draft.discard());
  }
}

/** The libraries of an engine: those that are named, else the installed runtime for a GPU, else the package's. */
export async function librariesOf({
  device,
  runtime,
  runtimesDir,
}: EngineConfig): Promise<{ readonly runtimePath: string; readonly libraries?: readonly string[] }> {
  if (runtime !== undefined) return { runtimePath: runtime };
  if (device === 'cpu') return { runtimePath: defaultRuntimePath() };
  // Imported where it is needed, because every import delays a start on the CPU.
  const { findRuntime } = await import('../runtime/installed.ts');
  const installed = await findRuntime(runtimesDir);
  if (!installed) return { runtimePath: defaultRuntimePath() };
  return { runtimePath: installed.runtimePath, libraries: installed.libraries };
}

/** Levels of RuntimeMessage in words. */
const LEVELS = ['verbose', 'info', 'warning', 'error', 'fatal'];

/** Sends what ONNX Runtime logs on a GPU to the operator. */
export const relayTo =
  (observer: Observer) =>
  ({ level, text }: RuntimeMessage): void =>
    observer.notice(`ONNX Runtime, ${LEVELS[level] ?? level}: ${text}`);

interface StartOptions {
  /** Fetches a network that is missing. */
  readonly pull: boolean;
  readonly observer: Observer;
  readonly signal: AbortSignal;
  /** Receives the engine before its networks are opened. */
  readonly onEngine?: (engine: Pick<Engine, 'stats'>) => void;
}

/** Opens a network from the best of its files; with `pull` fetches it if it is missing. */
async function openNetwork(
  opening: Opening,
  config: EngineConfig,
  { pull, observer, signal, onnxruntime }: StartOptions & { readonly onnxruntime: string },
): Promise<NetworkInfo> {
  const { modelsDir, device } = config;
  const { located, form } = opening;
  const ensure = async () => {
    const { ensureNetwork } = await import('../models/ensure.ts');
    return ensureNetwork(located.name, { modelsDir, pull, device, form, observer, signal });
  };
  if (device === 'cpu') return (await openCopy(opening, config)) ?? (await openPrepared(opening, ensure));
  // Imported where it is needed, because every import delays a start on the CPU.
  const { openOnGpu } = await import('./openOnGpu.ts');
  return openOnGpu(opening, config, { ensure, observer, onnxruntime });
}

/** Whether the second network was opened; false, with a notice, where it is absent and was not asked for by name. */
async function openSecond(
  open: () => Promise<NetworkInfo>,
  { model, secondModel }: EngineConfig,
  observer: Observer,
): Promise<boolean> {
  try {
    await open();
    return true;
  } catch (error) {
    if (secondModel !== 'auto' || !isAbsent(error)) throw error;
    observer.notice(`${model} runs alone: ${error.message} Set CUTOUT_SECOND_MODEL=off if this is intended.`);
    return false;
  }
}

/** Name of the network that runs beside the first one in a profile; undefined: none. Rejects with ModelError. */
export async function secondNetworkOf(
  models: ConfiguredModels,
  { second }: Pick<Profile, 'second'>,
): Promise<string | undefined> {
  return second === 'on' ? secondModelOf(models) : undefined;
}

/**
 * Finds (or with `pull` fetches) the network, starts the engine's threads, loads the network and warms it up.
 * Rejects with ModelError or EngineError, whose messages are for the operator, and soon after an abort with
 * the reason of `signal`.
 */
export async function openEngine(
  config: EngineConfig,
  profile: Pick<Profile, 'second'>,
  start: StartOptions,
): Promise<OpenedEngine> {
  const { observer, signal } = start;
  const { modelsDir, device, model } = config;
  const native = loadAddon();
  const versions = native.versions();
  const first = await locate(model, config, versions);
  const beside = await secondNetworkOf(config, profile);
  const other = beside === undefined ? undefined : await locate(beside, config, versions);
  const refused = refusedText(versions);
  if (refused !== undefined) observer.notice(refused);
  const threads = threadsOf(config);
  const engine = createEngine(
    native,
    {
      ...threads,
      ...(await librariesOf(config)),
      provider: device,
      deviceIds: deviceIdsOf(config),
      // The scheduler before it (`FairScheduler`) admits far fewer.
      queueLimit: 10_000,
      idleReleaseMs: config.idleRelease * 1000,
      maxBatch: maxBatchOf(config),
      ...(config.deviceMemory !== 'auto' && { deviceMemoryBytes: config.deviceMemory }),
      batchDelayMs: config.batchDelay,
    },
    device === 'cpu' ? undefined : relayTo(observer),
  );
  start.onEngine?.(engine);
  const giveUp = () => void engine.close(0);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    signal.throwIfAborted();
    // Networks compiled by a GPU's provider cannot be saved in this form.
    const processor = device === 'cpu' ? await processorKey() : undefined;
    const { onnxruntime } = native.versions();
    const opener = { load: loadWithNotices(engine, observer), gpus: () => engine.gpus() };
    const openIt = ({ located, form, choice }: Located, pull: boolean) => {
      const operators = choice.operators ?? '';
      const cacheKey = processor ? { onnxruntime, processor, operators } : undefined;
      const opening = { engine: opener, located, form, cacheKey, signal };
      return openNetwork(opening, config, { ...start, pull, onnxruntime });
    };
    const open = async (pull: boolean, required: boolean) => {
      // Short, and concurrent with opening the network, whose errors are reported first.
      const options = { pull, observer, signal, required };
      const types = openSubjectTypes(engine, config, options);
      types.catch(() => {});
      const info = await openIt(first, pull);
      return { info, types: await types };
    };
    const { info, types } = await open(start.pull, false);
    const second =
      other && (await openSecond(() => openIt(other, start.pull), config, observer)) ? other : undefined;
    if (types.notice) observer.notice(types.notice);
    const { sizeStep, operators: made } = await preparedFacts(model, { modelsDir, device, form: first.form });
    // On a GPU a network has one size (native/ort/network.cc).
    const network = { ...first.located, sizeStep: device === 'cpu' ? sizeStep : 0 };
    const { operators: wanted, ...plain } = first.choice;
    const reload = async () => {
      await open(false, types.found);
      if (second) await openIt(second, false);
    };
    return {
      engine,
      network,
      second: second?.located,
      info,
      threads,
      // A network whose 8-bit part the operators do not know is computed by those of ONNX Runtime.
      precision: made && wanted !== undefined ? { ...plain, operators: wanted } : plain,
      subjectTypes: types.found,
      selector: openSelector(engine, config, { ...start, processor: versions }),
      onnxruntime,
      reload,
    };
  } catch (error) {
    await engine.close(0);
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
