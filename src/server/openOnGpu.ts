import type { EngineConfig } from '../config/engine.ts';
import { EngineError, type Gpu, type NetworkInfo, type NetworkSpec } from '../engine/types.ts';
import { gpuSpecOf, preparedFacts } from '../models/locate.ts';
import type { Observer } from '../models/observer.ts';
import type { Opening } from './networkOpening.ts';

interface GpuOpening {
  readonly ensure: () => Promise<NetworkSpec>;
  readonly observer: Observer;
  /** Version of the library. */
  readonly onnxruntime: string;
}

/** What engines depend on that may differ between the GPUs of a machine. */
const engineFor = ({ name, computeCapability }: Gpu) => `${name} (compute capability ${computeCapability})`;

/** Opens the network on the GPUs; for TensorRT with its cached engine, or building one. */
export async function openOnGpu(
  opening: Opening,
  config: EngineConfig,
  given: GpuOpening,
): Promise<NetworkInfo> {
  const { engine, located, form, signal } = opening;
  const { modelsDir, device } = config;
  const { ensure, observer, onnxruntime } = given;
  const ensured = await ensure();
  const facts = await preparedFacts(located.name, { modelsDir, device, form });
  const network = gpuSpecOf({ ...located, ...ensured, fp16: form === 'fp16' }, facts);
  signal.throwIfAborted();
  const gpus = engine.gpus();
  const [gpu] = gpus;
  if (device !== 'tensorrt' || !gpu) {
    const info = await engine.load(network);
    const how = network.gpuProgram ? "Cutout's own kernels" : "ONNX Runtime's provider for CUDA";
    observer.notice(
      `${located.name} runs by ${how} on ${gpus.map(({ id, name }) => `GPU ${id} (${name})`).join(', ')}.`,
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
  const cacheKey = { network: facts.sha256, fp16: form === 'fp16', onnxruntime, gpu };
  const cache = await openTensorrtCache(network.path, cacheKey);
  if (!cache?.built) {
    observer.notice(
      `TensorRT ${gpu.tensorrt} builds the engine of ${located.name} for ${gpu.name}: this takes minutes${cache ? ', once' : ` at every start, because ${modelsDir} cannot be written`}.`,
    );
  }
  try {
    const info = await engine.load({ ...network, ...(cache && { engineCache: cache.folder }) });
    await cache?.keep();
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
