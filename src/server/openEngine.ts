import type { Form } from '../compiler/form.ts';
import type { EngineConfig } from '../config/engine.ts';
import type { NetworkSize } from '../cutout/qualityProfile.ts';
import type { UncertaintyCurve } from '../cutout/uncertaintyScore.ts';
import { defaultRuntimePath, loadAddon } from '../engine/addon.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import type { LazySelector } from '../engine/selector.ts';
import { chooseThreads, type Threads } from '../engine/threads.ts';
import {
  EngineError,
  type EngineOptions,
  type NativeModule,
  type NetworkInfo,
  type NetworkSpec,
  type RuntimeMessage,
} from '../engine/types.ts';
import { UserError } from '../errors.ts';
import { KeptChoice } from '../models/choice.ts';
import { ModelError } from '../models/error.ts';
import { networkFiles } from '../models/layout.ts';
import { findFor, preparedFacts, secondModelOf, specOf } from '../models/locate.ts';
import type { Manifest } from '../models/manifest.ts';
import type { Observer } from '../models/observer.ts';
import { processorKey } from '../models/optimised.ts';
import {
  formFor,
  type PrecisionChoice,
  precisionChoices,
  questionOf,
  refusedText,
} from '../models/precision.ts';
import { memoryLimit } from '../ops/memory.ts';
import { findRuntime, takesRtx } from '../runtime/installed.ts';
import { type MemoryRoom, roomFor } from './checkMemory.ts';
import { loadWithNotices, type OpenOptions, openNetwork } from './openNetwork.ts';
import { openSelector } from './openSelector.ts';
import { isAbsent, openSubjectTypes } from './openSubjectTypes.ts';
import { SecondNetworkLoader } from './secondNetworkLoader.ts';

/** The engine with its network loaded and warmed up. */
export interface OpenedEngine {
  readonly engine: Engine;
  readonly network: NetworkSpec & NetworkSize;
  /** Chances of results, by the uncertainty of the network; undefined: not known for this one. */
  readonly curve: UncertaintyCurve | undefined;
  /** The network that looks at what leaves the first one in doubt; undefined: none does. */
  readonly second: SecondNetworkLoader | undefined;
  readonly info: NetworkInfo;
  readonly device: EngineConfig['device'];
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

/** Images in one run: batches by default on NVIDIA's GPUs only, since those of others may be small. */
const maxBatchOf = ({ batchMax, device }: Pick<EngineConfig, 'batchMax' | 'device'>): number =>
  unlessAuto(batchMax) ?? (device === 'cuda' || device === 'tensorrt' ? 8 : 1);

/** The GPUs of the settings. Where the driver shows none, number 0: opening it says why. WebGPU chooses one by itself, number 0. */
export function deviceIdsOf({
  device,
  deviceIds,
}: Pick<EngineConfig, 'device' | 'deviceIds'>): readonly number[] {
  if (device === 'cpu') return [0];
  if (deviceIds !== 'all') return deviceIds;
  const count = device === 'webgpu' ? 1 : loadAddon().computeCapabilities().length;
  return Array.from({ length: Math.max(1, count) }, (_, id) => id);
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

type Versions = ReturnType<NativeModule['versions']>;

/** A network's files, in the form for this machine. */
interface LocatedNetwork {
  readonly located: NetworkSpec;
  readonly choice: PrecisionChoice;
  readonly form: Form;
  readonly curve: UncertaintyCurve | undefined;
}

/** What a network may be computed in on this machine, and the choice that was made before. Throws ModelError. */
export function choiceOf(
  manifest: Manifest,
  config: EngineConfig,
  versions: Pick<Versions, 'addon' | 'operators'>,
  memory: number | 'auto',
) {
  const choices = precisionChoices(manifest, questionOf(config, versions));
  const { intraOpThreads: threads } = threadsOf(config);
  const { bytes } = memoryLimit(memory);
  const key = { choices, threads, version: versions.addon, memory: bytes };
  return { manifest, choices, kept: new KeptChoice(config.modelsDir, manifest, key) };
}

/** Returns a network's files in the form of a choice. */
function locate(manifest: Manifest, choice: PrecisionChoice, { modelsDir }: EngineConfig): LocatedNetwork {
  const form = formFor(choice);
  const { operators } = choice;
  const located = specOf(manifest, networkFiles(modelsDir, manifest, form).prepared);
  return {
    choice,
    form,
    curve: manifest.uncertainty,
    located: { ...located, ...(operators !== undefined && { operators }) },
  };
}

type EngineLibraries = Pick<EngineOptions, 'provider' | 'runtimePath' | 'libraries' | 'plugin'>;

/**
 * The provider of the settings and its libraries: those that are named, else the installed runtime for a GPU, else the package's.
 * TensorRT is the plugin where that is installed and takes the GPUs, unless CUTOUT_RUNTIME names a build for GPUs. Throws UserError.
 */
export function librariesOf(config: EngineConfig): EngineLibraries {
  const { device, runtime, runtimesDir } = config;
  const named = { provider: device, runtimePath: runtime ?? defaultRuntimePath() };
  if (device === 'cpu' || device === 'webgpu' || runtime !== undefined) return named;
  const { deviceIds } = config;
  const gpus = loadAddon().computeCapabilities();
  const takes = takesRtx(gpus.filter((_, id) => deviceIds === 'all' || deviceIds.includes(id)));
  const plugin = device === 'tensorrt' ? findRuntime(runtimesDir, device) : undefined;
  if (plugin && takes) return { ...named, ...plugin, provider: 'tensorrt-rtx' };
  const installed = findRuntime(runtimesDir, 'cuda');
  if (device === 'tensorrt' && !installed)
    throw new UserError(
      takes
        ? `CUTOUT_DEVICE is tensorrt, and its runtime is not in ${runtimesDir}. Install it with \`cutout runtime install tensorrt\` (146 MB).`
        : "CUTOUT_DEVICE is tensorrt, and TensorRT for RTX does not take these GPUs. Run `cutout runtime install cuda` (1.2 GB) and install NVIDIA's TensorRT 10 (docs/gpu.md), or set CUTOUT_DEVICE=cuda.",
    );
  return { ...named, ...installed };
}

/** An idle GPU waits so long for more images: less than a run takes, longer than a burst of requests takes to arrive. */
const batchDelayMs = 2;

/** Levels of RuntimeMessage in words. */
const levels = ['verbose', 'info', 'warning', 'error', 'fatal'];

/** Sends what ONNX Runtime logs on a GPU to the operator. */
const relayTo =
  (observer: Observer) =>
  ({ level, text }: RuntimeMessage): void =>
    observer.notice(`ONNX Runtime, ${levels[level] ?? level}: ${text}`);

/** Opens a network's files; `fetch`: fetches them where they are missing. */
type Open = (network: LocatedNetwork, fetch: boolean, signal?: AbortSignal) => Promise<NetworkInfo>;

/**
 * Opens the second network. One that was asked for by name must be there, or is fetched with `pull`. Of one that was not, a missing
 * one is left for later with `pull`; where it cannot be opened, as on a GPU whose provider is not installed, a notice says
 * that the first network runs alone.
 */
async function openSecond(
  second: LocatedNetwork,
  open: Open,
  { model, secondModel }: EngineConfig,
  { pull, observer, signal }: Pick<OpenOptions, 'pull' | 'observer' | 'signal'>,
): Promise<SecondNetworkLoader | undefined> {
  const { name } = second.located;
  const named = secondModel !== 'auto';
  let loaded = false;
  try {
    await open(second, pull && named);
    loaded = true;
  } catch (error) {
    signal.throwIfAborted();
    const absent = isAbsent(error);
    if (named || !(error instanceof ModelError || error instanceof EngineError)) throw error;
    if (!absent || !pull) {
      observer.notice(
        `${model} runs alone: ${error.message} Set CUTOUT_SECOND_MODEL=off if this is intended.`,
      );
      // One that nothing will load gets no memory.
      return undefined;
    }
  }
  return new SecondNetworkLoader({
    name,
    loaded,
    named,
    open: (fetch, signal) => open(second, fetch, signal),
    observer,
  });
}

/** Starts the threads of an engine for these settings. */
export async function startEngine(
  native: NativeModule,
  config: EngineConfig,
  observer: Observer,
): Promise<Engine> {
  const { device, deviceMemory, deviceBecause } = config;
  if (deviceBecause !== undefined) observer.notice(`The device is ${device}: ${deviceBecause}.`);
  if (device === 'webgpu' && deviceMemory !== 'auto')
    throw new UserError(
      'CUTOUT_DEVICE_MEMORY bounds the memory of NVIDIA GPUs only. Unset it, or set CUTOUT_DEVICE=cuda or tensorrt.',
    );
  return createEngine(
    native,
    {
      ...threadsOf(config),
      ...librariesOf(config),
      deviceIds: deviceIdsOf(config),
      // The scheduler before it (`FairScheduler`) admits far fewer.
      queueLimit: 10_000,
      idleReleaseMs: config.idleRelease * 1000,
      maxBatch: maxBatchOf(config),
      ...(deviceMemory !== 'auto' && { deviceMemoryBytes: deviceMemory }),
      batchDelayMs,
    },
    device === 'cpu' ? undefined : relayTo(observer),
  );
}

/** The networks that an engine runs. */
interface Networks {
  readonly first: LocatedNetwork;
  readonly second: LocatedNetwork | undefined;
}

type LoadedNetworks = Pick<OpenedEngine, 'info' | 'reload' | 'second' | 'subjectTypes'>;

/** Loads the networks and the classifier of subjects into an engine. */
async function loadNetworks(
  engine: Engine,
  { first, second: wanted }: Networks,
  config: EngineConfig,
  {
    pull,
    observer,
    signal,
    room,
    onnxruntime,
  }: OpenOptions & { readonly room: MemoryRoom } & { readonly onnxruntime: string },
): Promise<LoadedNetworks> {
  // Networks compiled by a GPU's provider cannot be saved in this form.
  const processor = config.device === 'cpu' ? await processorKey() : undefined;
  const opener = { load: loadWithNotices(engine, observer), gpus: () => engine.gpus() };
  let starting = true;
  // Bytes of the first network, beside which the second one must fit.
  let taken = 0;
  const open: Open = ({ located, form, choice }, fetch, leaving) => {
    const operators = choice.operators ?? '';
    const cacheKey = processor ? { onnxruntime, processor, operators } : undefined;
    const until = leaving ? AbortSignal.any([signal, leaving]) : signal;
    const opening = { engine: opener, located, form, cacheKey, signal: until };
    // What is fetched behind a server that is ready shows no progress.
    const watched = leaving ? { ...observer, progress: () => {} } : observer;
    // What was open before has the same memory again.
    const checked = fetch || starting ? { ...room, held: room.held + taken } : undefined;
    return openNetwork(opening, config, { pull: fetch, room: checked, observer: watched, onnxruntime });
  };
  const openFirst = async (mayPull: boolean, required: boolean) => {
    // Short, and concurrent with opening the network, whose errors are reported first.
    const types = openSubjectTypes(engine, config, { pull: mayPull, observer, signal, required });
    types.catch(() => {});
    const info = await open(first, mayPull);
    return { info, types: await types };
  };
  const { info, types } = await openFirst(pull, false);
  const { form, located } = first;
  const facts = await preparedFacts(located.name, {
    modelsDir: config.modelsDir,
    device: config.device,
    form,
  });
  taken = facts.memory?.bytes ?? 0;
  const second = wanted && (await openSecond(wanted, open, config, { pull, observer, signal }));
  starting = false;
  if (types.notice) observer.notice(types.notice);
  const reload = async () => {
    await openFirst(false, types.found);
    await second?.reload();
  };
  return { info, second, subjectTypes: types.found, reload };
}

/** A network's files in the form that is named, was chosen before, or is measured now; the engine has no network before and after. */
async function settledForm(
  network: ReturnType<typeof choiceOf>,
  engine: Engine,
  config: EngineConfig,
  start: OpenOptions & { readonly room: MemoryRoom },
): Promise<LocatedNetwork> {
  const { choices, kept, manifest } = network;
  const known = choices.length === 1 ? choices[0] : await kept.read();
  if (known) return locate(manifest, known, config);
  // Imported only if needed, because images and preparation are large.
  const { measurePrecision } = await import('./measurePrecision.ts');
  return locate(manifest, await measurePrecision(network, engine, config, start), config);
}

/** Opens the engine on the device of the settings. */
async function openOn(config: EngineConfig, start: OpenOptions): Promise<OpenedEngine> {
  const { observer, signal } = start;
  const { modelsDir, device, model } = config;
  const room = roomFor(start.memory);
  const native = loadAddon();
  const versions = native.versions();
  const find = async (name: string) =>
    choiceOf((await findFor(name, { modelsDir })).manifest, config, versions, start.memory ?? 'auto');
  const found = await find(model);
  const secondName = await secondModelOf(config);
  const foundSecond = secondName === undefined ? undefined : await find(secondName);
  const refused = refusedText(versions);
  if (refused !== undefined) observer.notice(refused);
  const threads = threadsOf(config);
  const engine = await startEngine(native, config, observer);
  start.onOpening?.(() => engine.stats().opening);
  const giveUp = () => void engine.close(0);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    signal.throwIfAborted();
    const form = (network: typeof found, pull: boolean) =>
      settledForm(network, engine, config, { ...start, pull, room });
    const first = await form(found, start.pull);
    // What is fetched later is measured by the start after that.
    const second = foundSecond && (await form(foundSecond, start.pull && config.secondModel !== 'auto'));
    const networks = { first, second };
    // ONNX Runtime's version is known once its library is loaded.
    const loaded = await loadNetworks(engine, networks, config, {
      ...start,
      room,
      onnxruntime: native.versions().onnxruntime,
    });
    const facts = await preparedFacts(model, { modelsDir, device, form: first.form });
    const { operators, ...chosen } = first.choice;
    // Programs for a GPU are in float16, whatever the network was published in.
    const plain = { ...chosen, precision: facts.precision ?? chosen.precision };
    return {
      ...loaded,
      engine,
      // On a GPU a network has one size (native/ort/network.cc).
      network: { ...first.located, sizeStep: device === 'cpu' ? facts.sizeStep : 0 },
      curve: first.curve,
      device,
      threads,
      // A network whose 8-bit part the operators do not know is computed by those of ONNX Runtime.
      precision: facts.operators && operators !== undefined ? { ...plain, operators } : plain,
      selector: openSelector(engine, config, { ...start, processor: versions }),
      onnxruntime: native.versions().onnxruntime,
    };
  } catch (error) {
    await engine.close(0);
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/**
 * Chooses the device where that is left to Cutout, finds (or with `pull` fetches) the network, starts the engine's threads, loads and
 * warms it up. Rejects with ModelError or EngineError, for the operator, and soon after an abort with the reason of `signal`.
 */
export async function openEngine(settings: EngineConfig, start: OpenOptions): Promise<OpenedEngine> {
  if (!settings.auto) return openOn(settings, start);
  // Imported only if needed: it starts processes.
  const { chooseDevice, forgetChoice } = await import('./chooseDevice.ts');
  const config = await chooseDevice(settings, start);
  try {
    return await openOn(config, start);
  } catch (error) {
    if (config.device !== 'cpu' && !start.signal.aborted) {
      const next = await forgetChoice(settings);
      start.observer.notice(`${config.device} was the fastest and cannot be opened: ${next}.`);
    }
    throw error;
  }
}
