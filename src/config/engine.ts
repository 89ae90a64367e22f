import { UserError } from '../errors.ts';
import { absolutePath, auto, bytes, integer, list, oneOf, showBytes } from './parsers.ts';
import { optional, type Settings, setting, type Values } from './types.ts';

const networkName = (text: string): string => {
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(text))
    throw new Error('the name of a network (cutout models list)');
  return text;
};

const devices = (text: string): 'all' | readonly number[] => {
  if (text === 'all') return 'all';
  const wanted = 'all, or different numbers from 0 to 63 separated by commas';
  const items = text.split(',').map((item) => item.trim());
  const numbers = list(integer(0, 63), wanted)(text);
  // An empty item is a number that is missing, for example of a variable that was not set.
  if (items.includes('') || new Set(numbers).size < numbers.length) throw new Error(wanted);
  return numbers;
};

export const engineSettings = {
  modelsDir: optional('CUTOUT_MODELS_DIR', absolutePath).help(
    'Folder of pulled and prepared networks (default: "models" in the data folder, where that is set, has some or belongs to a checkout; else ~/.local/share/cutout/models).',
  ),
  model: setting('CUTOUT_MODEL', 'isnet', networkName).help('Network to run.'),
  secondModel: setting('CUTOUT_SECOND_MODEL', 'auto', networkName).help(
    'Second network, which looks at the images that leave the first one in doubt; the surer answer is the result. off: none. auto: u2net after isnet, none after others; a server that may fetch it does so once it is ready. A name: that network, which must be there.',
  ),
  subjectTypes: setting('CUTOUT_SUBJECT_TYPES', 'on', oneOf('on', 'off')).help(
    'Whether type=auto detects the type of the subject (about 60 MB). off: X-Type is always other for type=auto.',
  ),
  subjectSelection: setting('CUTOUT_SUBJECT_SELECTION', 'on', oneOf('on', 'off')).help(
    'Whether subject_points and subject_box choose the subject. The network sam2-tiny is downloaded and loaded at the first such request; a server with --no-pull needs it pulled before. off: they are refused with 400.',
  ),
  device: setting('CUTOUT_DEVICE', 'cpu', oneOf('auto', 'cpu', 'cuda', 'tensorrt', 'webgpu')).help(
    'Device that runs the network: cpu; cuda or tensorrt (`cutout runtime install`); webgpu, a GPU of any maker by Vulkan. auto: the fastest device that can be used here; the first start measures them and keeps the choice, which cutout doctor shows. A device that is named and cannot be used fails the start.',
  ),
  deviceIds: setting('CUTOUT_DEVICE_ID', '0', devices).help(
    'Numbers of the GPUs, for example 0 or 0,1; all: every GPU that the driver shows. Each gets a copy of the networks, and images go to the one with the fewest in progress.',
  ),
  deviceMemory: setting('CUTOUT_DEVICE_MEMORY', 'auto', auto(bytes), { show: showBytes }).help(
    'Memory of each GPU that the networks and the images in progress may take, for example 20G; sizes of batches that do not fit are left out, and a network that does not fit ends the start. auto: nine tenths of the GPU.',
  ),
  precision: setting('CUTOUT_PRECISION', 'auto', oneOf('auto', 'fp32', 'int8', 'bf16')).help(
    'Precision of the network on a CPU. auto: of those that lose little, the fastest as the first start measured it on this machine (cutout doctor).',
  ),
  operators: setting(
    'CUTOUT_OPERATORS',
    'auto',
    oneOf(
      'auto',
      'off',
      'amx_int8',
      'avx512_vnni',
      'avx_vnni',
      'avx512',
      'avx2',
      'amx_bf16',
      'avx512_bf16',
      'i8mm',
      'asimddp',
    ),
  ).help(
    "Implementation of the network's operators (convolutions and others) in 8 bits or bf16; people who operate the service are set in CUTOUT_OIDC_OPERATORS. auto takes Cutout's own operators where the first start measured them to be faster, a name takes those for that instruction set, off takes those of ONNX Runtime, which have no bf16.",
  ),
  runtime: optional('CUTOUT_RUNTIME', absolutePath).help(
    'File of the ONNX Runtime library (default: for a GPU the installed runtime, otherwise the library in the npm package onnxruntime-node).',
  ),
  workers: setting('CUTOUT_WORKERS', 'auto', auto(integer(1, 64))).help('Number of concurrent network runs.'),
  threads: setting('CUTOUT_THREADS', 'auto', auto(integer(1, 256))).help('Threads of one network run.'),
  batchMax: setting('CUTOUT_BATCH_MAX', 'auto', auto(integer(1, 64))).help(
    'Images that a GPU computes in one run at most: this number and its halves are prepared. auto is 8 with cuda and tensorrt, 1 with webgpu and on a CPU, which gains nothing.',
  ),
  idleRelease: setting('CUTOUT_IDLE_RELEASE', '300', integer(0, 86_400)).help(
    'Seconds without a request after which the memory of a network run (0.1 GB in 8 bits, 0.6 GB in floats) is returned to the system; the next request takes about half a second longer. 0 keeps it.',
  ),
  idleUnload: setting('CUTOUT_IDLE_UNLOAD', '0', integer(0, 2_000_000)).help(
    'Seconds without a request after which the network itself is unloaded and its memory is returned to the system; the next request waits until it is loaded again. 0 keeps it.',
  ),
} as const satisfies Settings;

export type EngineConfig = Omit<Values<typeof engineSettings>, 'modelsDir' | 'device'> & {
  readonly modelsDir: string;
  /** The device is cpu until it is chosen, where the setting is auto (src/server/chooseDevice.ts). */
  readonly device: Exclude<Values<typeof engineSettings>['device'], 'auto'>;
  /** Whether the setting is auto and the device is not chosen yet. */
  readonly auto: boolean;
  /** VK_DRIVER_FILES, by which Vulkan finds its GPUs; empty: not set. */
  readonly vulkanDrivers: string;
  /** Why `device` was chosen. */
  readonly deviceBecause?: string;
  /** Folder of installed GPU runtimes (`cutout runtime install`), inside the data folder. */
  readonly runtimesDir: string;
};

/** Throws UserError if the second network is the first one. */
export function checkSecondModel({ model, secondModel }: Values<typeof engineSettings>): void {
  if (secondModel === model)
    throw new UserError(
      `CUTOUT_SECOND_MODEL is ${model}, which CUTOUT_MODEL is already. Name another network, or set it to off.`,
    );
}
