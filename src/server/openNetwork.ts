import type { Form } from '../compiler/form.ts';
import type { EngineConfig } from '../config/engine.ts';
import type { Engine } from '../engine/engine.ts';
import { openingSince } from '../engine/openingText.ts';
import {
  EngineError,
  type EngineStats,
  type Gpu,
  type NetworkInfo,
  type NetworkSpec,
  type OpeningStep,
} from '../engine/types.ts';
import { gpuSpecOf, preparedFacts } from '../models/locate.ts';
import type { Observer } from '../models/observer.ts';
import { type CacheKey, draftOptimised, findOptimised } from '../models/optimised.ts';
import { checkMemory, type MemoryRoom } from './checkMemory.ts';

/** How an opening fetches what is missing, and reports. */
export interface FetchOptions {
  /** Fetches networks that are missing. */
  readonly pull: boolean;
  readonly observer: Observer;
  /** Aborts it with its reason. */
  readonly signal: AbortSignal;
}

/** How an engine is opened. */
export interface OpenOptions extends FetchOptions {
  /** CUTOUT_MEMORY_LIMIT, which the networks must fit into. */
  readonly memory?: number | 'auto';
  /** Receives what tells, from now on, what of the networks is being opened. */
  readonly onOpening?: (steps: () => readonly OpeningStep[]) => void;
}

/** A network being opened from any of its files. */
interface NetworkOpening {
  readonly engine: Pick<Engine, 'load' | 'gpus'>;
  readonly located: NetworkSpec;
  readonly form: Form;
  readonly cacheKey: CacheKey | undefined;
  readonly signal: AbortSignal;
}

/** Milliseconds between two looks at what is being opened. */
const lookMs = 1000;
/** Seconds between two notices. */
const noticeSeconds = 10;

/**
 * Makes the engine's `load` report its progress to an observer: each of several steps within a second, and a notice every ten
 * seconds. TensorRT may take minutes for a step.
 */
export function loadWithNotices(
  engine: Pick<Engine, 'load'> & { stats(): Pick<EngineStats, 'opening'> },
  observer: Observer,
): Engine['load'] {
  return async (spec) => {
    let seconds = 0;
    let reported = 0;
    const timer = setInterval(() => {
      seconds += lookMs / 1000;
      const step = engine.stats().opening.find(({ network }) => network === spec.name);
      if (!step) return;
      if (step.steps > 1 && step.step !== reported)
        observer.progress({ phase: 'open', network: spec.name, step });
      reported = step.step;
      if (seconds % noticeSeconds === 0) observer.notice(`Opening ${openingSince(step)}.`);
    }, lookMs);
    try {
      return await engine.load(spec);
    } finally {
      clearInterval(timer);
    }
  };
}

/** Opens the optimised copy of an earlier start while its checksum is verified; undefined without a valid one. */
async function openCopy(
  { engine, located, form, cacheKey, signal }: NetworkOpening,
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
  { engine, located, cacheKey, signal }: NetworkOpening,
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

interface GpuOpening {
  readonly ensure: () => Promise<NetworkSpec>;
  readonly observer: Observer;
  /** Version of the library. */
  readonly onnxruntime: string;
}

/** What engines depend on that may differ between the GPUs of a machine. */
const engineFor = ({ name, computeCapability }: Gpu) => `${name} (compute capability ${computeCapability})`;

/** Said of providers that run the network alone. */
const aroundOnCpu = 'the steps around the network run on the CPU';

/** Opens the network on the GPUs; for TensorRT with its cached engine, or building one. */
export async function openOnGpu(
  opening: NetworkOpening,
  config: EngineConfig,
  given: GpuOpening,
): Promise<NetworkInfo> {
  const { engine, located, form, signal } = opening;
  const { modelsDir, device } = config;
  const { ensure, observer, onnxruntime } = given;
  const ensured = await ensure();
  const facts = await preparedFacts(located.name, { modelsDir, device, form });
  const network = gpuSpecOf({ ...located, ...ensured }, facts);
  signal.throwIfAborted();
  const gpus = engine.gpus();
  const [gpu] = gpus;
  if (device !== 'tensorrt' || !gpu) {
    const info = await engine.load(network);
    const how = network.gpuProgram
      ? "Cutout's own kernels"
      : `ONNX Runtime's provider for ${device === 'webgpu' ? 'WebGPU' : 'CUDA'}`;
    const rest = device === 'webgpu' ? `; ${aroundOnCpu}` : '';
    observer.notice(
      `${located.name} runs by ${how} on ${gpus.map(({ id, name }) => `GPU ${id} (${name})`).join(', ')}${rest}.`,
    );
    return info;
  }
  const other = gpus.find((each) => engineFor(each) !== engineFor(gpu));
  if (other)
    throw new EngineError(
      'ENGINE_DEVICE',
      `TensorRT's engines are built for one kind of GPU, and ${gpu.id} is ${engineFor(gpu)} and ${other.id} is ${engineFor(other)}. Name GPUs of one kind in CUTOUT_DEVICE_ID and run a process for each kind, or set CUTOUT_DEVICE=cuda.`,
    );
  const { openTensorrtCache } = await import('../models/tensorrtCache.ts');
  // TensorRT for RTX builds one engine for all sizes of batches; kernels for the card are compiled as they are used.
  const rtx = gpu.tensorrt.startsWith('for RTX');
  const cacheKey = {
    ...{ network: facts.sha256, fp16: facts.precision === 'fp16', onnxruntime, gpu },
    ...(rtx && { batchMax: config.batchMax }),
  };
  const cache = await openTensorrtCache(network.path, cacheKey);
  if (!cache?.built) {
    observer.notice(
      `TensorRT ${gpu.tensorrt} builds the engine of ${located.name} for ${gpu.name}: this takes ${rtx ? 'seconds' : 'minutes'}${cache ? ', once' : ` at every start, because ${modelsDir} cannot be written`}.`,
    );
  }
  try {
    const caches = cache && { engineCache: cache.folder, ...(rtx && { kernelCache: cache.kernels }) };
    const info = await engine.load({ ...network, ...caches });
    await cache?.keep();
    if (rtx) observer.notice(`${located.name} runs by TensorRT for RTX; ${aroundOnCpu}.`);
    return info;
  } catch (error) {
    await cache?.discard();
    signal.throwIfAborted();
    // Without a cache, nothing of what failed can be a stale engine.
    if (!cache?.built) throw error;
    observer.notice(`The cached engine of ${located.name} cannot be used and is built again.`);
    return openOnGpu(opening, config, given);
  }
}

/**
 * Opens a network from the best of its files; with `pull` fetches it if it is missing. `room`: what it must
 * fit into on the CPU; undefined: not checked, as of one that was open before.
 */
export async function openNetwork(
  opening: NetworkOpening,
  config: EngineConfig,
  {
    pull,
    room,
    observer,
    onnxruntime,
  }: Omit<FetchOptions, 'signal'> &
    Pick<GpuOpening, 'onnxruntime'> & { readonly room?: MemoryRoom | undefined },
): Promise<NetworkInfo> {
  const { modelsDir, device } = config;
  const { located, form, signal } = opening;
  const ensure = async () => {
    const { ensureNetwork } = await import('../models/ensure.ts');
    return ensureNetwork(located.name, { modelsDir, pull, device, form, observer, signal });
  };
  const check = async () => {
    if (!room) return;
    const { name } = located;
    checkMemory({ name, form }, (await preparedFacts(name, { modelsDir, device, form })).memory, room);
  };
  if (device === 'cpu') {
    await check();
    const checked = async () => {
      const spec = await ensure();
      await check();
      return spec;
    };
    return (await openCopy(opening, config)) ?? (await openPrepared(opening, checked));
  }
  return openOnGpu(opening, config, { ensure, observer, onnxruntime });
}
