import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { EngineConfig } from '../config/engine.ts';
import { defaultAddonPath, loadAddon } from '../engine/addon.ts';
import { availableCores } from '../engine/threads.ts';
import { readKept } from '../models/json.ts';
import { networkFiles } from '../models/layout.ts';
import { findFor } from '../models/locate.ts';
import type { Progress } from '../models/observer.ts';
import { processorKey } from '../models/optimised.ts';
import { runtimeFolder, takesRtx } from '../runtime/installed.ts';

type Device = EngineConfig['device'];

/** What is known of a machine's GPUs before one is opened. */
export interface MachineFacts {
  /** Compute capabilities of the GPUs of the settings, as NVIDIA's driver shows them. */
  readonly capabilities: readonly string[];
  /** The runtimes that are installed. */
  readonly runtimes: readonly ('cuda' | 'tensorrt')[];
  /** Whether Cutout's kernels are there, which run some networks. */
  readonly kernels: boolean;
  /** Whether ONNX Runtime has WebGPU here. */
  readonly webgpu: boolean;
  /** Models and drivers of the GPUs that the system renders with. */
  readonly renderers: readonly string[];
}

/** A device and why it is taken, as the end of a sentence. */
const choiceSchema = z.strictObject({
  key: z.string(),
  device: z.enum(['cpu', 'cuda', 'tensorrt', 'webgpu']),
  because: z.string(),
});
export type DeviceChoice = Pick<z.infer<typeof choiceSchema>, 'device' | 'because'>;

/** What CUTOUT_DEVICE=auto has to decide, and where the answer is kept and what it holds for. */
export interface DeviceQuestion {
  readonly candidates: readonly Device[];
  /** Why there is none beside cpu, if so. */
  readonly alone: string;
  readonly key: string;
  readonly file: string;
}

/** What a process that measures one device is given. */
export interface DeviceTask {
  readonly config: EngineConfig;
  readonly pull: boolean;
  readonly memory: number | 'auto';
}

/** What it answers: any number of notices and progress, and then a rate or a failure. */
export interface TrialMessage {
  readonly notice?: string;
  readonly progress?: Progress;
  readonly imagesPerSecond?: number;
  readonly failure?: string;
}

/** The devices that may be the fastest for these settings on a machine; cpu, the first one, alone: nothing has to be measured. */
export function candidatesOf(
  {
    precision,
    deviceMemory,
    runtime,
    vulkanDrivers,
  }: Pick<EngineConfig, 'precision' | 'deviceMemory' | 'runtime' | 'vulkanDrivers'>,
  { capabilities, runtimes, kernels, webgpu, renderers }: MachineFacts,
): readonly Device[] {
  // That setting is for CPUs.
  if (precision !== 'auto') return ['cpu'];
  const nvidia = capabilities.length > 0;
  const runsKernels = kernels && capabilities.every((each) => Number(each) >= 8);
  // A library that is named is a build for the CPU or CUDA.
  const named = runtime !== undefined;
  const rtx = runtimes.includes('tensorrt') && takesRtx(capabilities);
  const vulkan = nvidia || renderers.length > 0 || vulkanDrivers !== '';
  const may: readonly (readonly [Device, boolean])[] = [
    ['cpu', true],
    ['cuda', nvidia && (named || runtimes.includes('cuda') || runsKernels)],
    ['tensorrt', nvidia && !named && rtx],
    ['webgpu', webgpu && !named && deviceMemory === 'auto' && vulkan],
  ];
  return may.filter(([, has]) => has).map(([device]) => device);
}

const textOf = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
};

/** Models and drivers of the GPUs in the folder where Linux lists those that render. */
function renderersIn(folder = '/sys/class/drm'): string[] {
  const nodes = existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith('renderD')) : [];
  return nodes.map((name) => textOf(path.join(folder, name, 'device', 'uevent')));
}

/** Rejects with ModelError for an unknown network, with EngineError without the addon. */
export async function deviceQuestion(config: EngineConfig): Promise<DeviceQuestion> {
  const { modelsDir, runtimesDir, deviceIds } = config;
  const { manifest } = await findFor(config.model, { modelsDir });
  const native = loadAddon();
  const installed = (['cuda', 'tensorrt'] as const).filter((name) =>
    existsSync(runtimeFolder(runtimesDir, name)),
  );
  const library = path.join(path.dirname(defaultAddonPath), 'libcutout_cuda.so');
  const facts: MachineFacts = {
    capabilities: native
      .computeCapabilities()
      .filter((_, id) => deviceIds === 'all' || deviceIds.includes(id)),
    runtimes: installed,
    kernels: existsSync(library),
    webgpu: process.platform === 'linux' && process.arch === 'x64',
    renderers: renderersIn(),
  };
  const candidates = candidatesOf(config, facts);
  const { deviceMemory, operators, runtime, workers, threads, batchMax, vulkanDrivers } = config;
  const key = JSON.stringify([
    ...[native.versions().addon, manifest.file.sha256, candidates],
    ...[(await processorKey()) ?? '', availableCores(), workers, threads, operators],
    ...[facts.capabilities, facts.renderers, vulkanDrivers, textOf('/proc/driver/nvidia/version')],
    ...[deviceIds, deviceMemory, batchMax, runtime],
  ]);
  const file = path.join(networkFiles(modelsDir, manifest).folder, 'device.json');
  const alone =
    config.precision === 'auto'
      ? 'no GPU was found that what is installed here can use'
      : 'CUTOUT_PRECISION is for CPUs';
  return { candidates, alone, key, file };
}

/** The answer that needs no measurement; undefined without one. */
export async function keptChoice(question: DeviceQuestion): Promise<DeviceChoice | undefined> {
  const { candidates, alone, key, file } = question;
  if (candidates.length === 1) return { device: 'cpu', because: alone };
  const kept = await readKept(choiceSchema, file);
  return kept?.key === key ? kept : undefined;
}

/** The settings for one network on a device. */
export const aloneOn = (
  config: EngineConfig,
  device: Device,
  model: string = config.model,
): EngineConfig => ({
  ...config,
  ...{ device, model, auto: false },
  ...({ secondModel: 'off', subjectTypes: 'off', subjectSelection: 'off' } as const),
});

/** The settings with a device that was chosen. */
export const decided = (config: EngineConfig, { device, because }: DeviceChoice): EngineConfig => ({
  ...config,
  auto: false,
  device,
  deviceBecause: because,
});

/**
 * The settings with the device that CUTOUT_DEVICE=auto stands for, as far as that is known without measuring: else cpu, and why. For
 * commands that do not run the network as a server does. Never rejects: what is wrong is said by what needs it.
 */
export async function knownDevice(config: EngineConfig): Promise<EngineConfig> {
  if (!config.auto) return config;
  const question = await deviceQuestion(config).catch(() => undefined);
  const because = `not measured yet: the first start measures ${question?.candidates.join(', ') ?? 'what is there'}`;
  return decided(config, (question && (await keptChoice(question))) ?? { device: 'cpu', because });
}
