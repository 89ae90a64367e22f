/**
 * The complete native interface. `binding/` implements it, `src/engine/addon.ts` loads it and compares `abi`,
 * test/contract/engine.ts checks it. Option names are the same here and in C++.
 *
 * Nothing here blocks the JavaScript thread. Caller errors (wrong type, wrong length) throw TypeError or
 * RangeError synchronously; everything else rejects with an Error whose `code` is an `EngineCode`.
 */
export const expectedAbi = 25;

export type Provider = 'cpu' | 'cuda' | 'tensorrt' | 'webgpu';

const engineCodes = [
  /** The pixels cannot be processed. */
  'ENGINE_BAD_INPUT',
  /** `queueLimit` jobs are waiting already. */
  'ENGINE_QUEUE_FULL',
  /** Cancelled by `cancel`. */
  'ENGINE_CANCELLED',
  /** `close` was called before the job was given, or its grace period ended before the job did. */
  'ENGINE_CLOSED',
  /** A network is missing, damaged, of another shape or not loaded, or its output has infinity or NaN. */
  'ENGINE_MODEL',
  /** Networks that were unloaded, or are loaded at their first use, cannot be loaded. */
  'ENGINE_NOT_LOADED',
  /** ONNX Runtime's library or the addon cannot be used, or the system refuses to start threads. */
  'ENGINE_RUNTIME',
  /** A provider's library is missing, ONNX Runtime lacks it, or the GPU does not run some operators of the network. */
  'ENGINE_PROVIDER',
  /** The GPU's driver is missing, too old or unusable. */
  'ENGINE_DRIVER',
  /** There is no such GPU, it is too old, or it has stopped working. */
  'ENGINE_DEVICE',
  /** The GPU has not enough free memory. */
  'ENGINE_DEVICE_MEMORY',
  /** An allocation was refused: this job failed, others continue. */
  'ENGINE_OUT_OF_MEMORY',
  'ENGINE_INTERNAL',
] as const;

type EngineCode = (typeof engineCodes)[number];

export const isEngineCode = (code: unknown): code is EngineCode =>
  (engineCodes as readonly unknown[]).includes(code);

/** Thrown by src/engine. The addon's own errors are plain Errors with the same codes. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly code: EngineCode;

  constructor(code: EngineCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export interface EngineOptions {
  /** File of the ONNX Runtime library, opened with dlopen. */
  readonly runtimePath: string;
  /** `tensorrt-rtx` is TensorRT for RTX. With it and with `webgpu` the network alone runs on the GPU. */
  readonly provider: Provider | 'tensorrt-rtx';
  /** File of the provider for `tensorrt-rtx`, which the library takes at run time. */
  readonly plugin?: string;
  /**
   * Numbers of the GPUs, at least one, all different; each gets the networks, and a job goes to the one with
   * the fewest. With the provider `cpu` so many copies of the networks run beside each other.
   */
  readonly deviceIds: readonly number[];
  /** Files of CUDA and TensorRT, each after those it needs; opened first, so that the provider finds them. */
  readonly libraries?: readonly string[];
  /** Network runs at the same time. */
  readonly workers: number;
  /** Threads of one network run, its worker included; concurrent runs share the others. */
  readonly intraOpThreads: number;
  /** Threads for pixel work (resampling, matte, encoding). */
  readonly pixelThreads: number;
  /** Jobs that may wait for a worker or a pixel thread, together; one more is rejected with ENGINE_QUEUE_FULL. */
  readonly queueLimit: number;
  /** Milliseconds without a run after which the memory of runs is returned, at most a day; 0: never. */
  readonly idleReleaseMs: number;
  /**
   * Images in one run of a network at most, 1 to 64; default 1. Networks are opened for this number and its halves,
   * as far as their files have a free batch and the device has memory; the fastest for what waits is used.
   */
  readonly maxBatch?: number;
  /**
   * Bytes of each GPU that the networks and jobs may take; default 0: nine tenths of it. Sizes of batches that would take more are
   * left out; a network of which not even single images fit rejects with ENGINE_DEVICE_MEMORY.
   */
  readonly deviceMemoryBytes?: number;
  /** Milliseconds that an idle device may wait for more images of a batch, at most 1000; default 0. */
  readonly batchDelayMs?: number;
}

export interface NetworkSpec {
  readonly name: string;
  /** File of the prepared network (src/models/prepareWorker.ts), or one saved earlier through `saveTo`. */
  readonly path: string;
  /**
   * Where to save the network as ONNX Runtime optimised it for this processor, its weights beside it as
   * `<saveTo>.data`. That copy opens in a fraction of the time, with its weights memory-mapped.
   */
  readonly saveTo?: string;
  /**
   * Instruction set of Cutout's own operators (NativeModule.versions().operators) for a file that has them
   * (src/compiler/lowPrecision/partition.ts). Without, such a file cannot be opened. ENGINE_RUNTIME for one that there are none for.
   */
  readonly operators?: string;
  /** Whether the file is a program for Cutout's own kernels on a GPU (src/compiler/lowPrecision/gpu.ts). */
  readonly gpuProgram?: boolean;
  /** Whether TensorRT may compute in float16; a file in float16 needs it. */
  readonly fp16?: boolean;
  /** Folder of TensorRT's engines, for this network and GPUs like `NativeEngine.gpus`; without, each load builds one. */
  readonly engineCache?: string;
  /** Folder of the kernels that TensorRT for RTX compiles when they are first used; without, each start compiles them. */
  readonly kernelCache?: string;
  /** Input size in pixels; the image is stretched to it. */
  readonly width: number;
  readonly height: number;
  /** (value - mean) / std, value in 0..255, per RGB channel. */
  readonly mean: readonly [number, number, number];
  readonly std: readonly [number, number, number];
  /** Output 0: a probability in 0..1, or a logit to which the sigmoid is applied. */
  readonly output: 'probability' | 'logit';
  /**
   * masks (default): trained on binary masks, which make hair and edges too solid, so refinement moves alpha to what
   * colour samples say (docs/matting.md, section 3); mattes: trained on soft alpha, so refinement takes no samples.
   */
  readonly trainedOn?: 'masks' | 'mattes';
}

export interface NetworkInfo {
  readonly name: string;
  /** Milliseconds to open the network and for the first (warm-up) run. */
  readonly loadMs: number;
  readonly warmUpMs: number;
}

/** Types of subject, in the order of everything that lists them. */
export const allSubjectTypes = [
  'person',
  'product',
  'animal',
  'car',
  'transportation',
  'graphic',
  'other',
] as const;

export type SubjectType = (typeof allSubjectTypes)[number];

/** Weights of the classification head; meaning and lengths: native/classify/subject_head.h. */
export interface SubjectHead {
  /** Units of the hidden layer; 0: no hidden layer, and no `second`. */
  readonly hidden: number;
  readonly mean: Float32Array;
  readonly scale: Float32Array;
  readonly first: Int8Array;
  readonly firstScale: Float32Array;
  readonly firstBias: Float32Array;
  readonly second: Int8Array;
  readonly secondScale: Float32Array;
  readonly secondBias: Float32Array;
  readonly temperature: number;
  /** 0 to 1. */
  readonly threshold: number;
}

export interface SubjectTypesSpec {
  /** A prepared network with two outputs: class maps and feature maps. */
  readonly detector: NetworkSpec;
  readonly head: SubjectHead;
}

export interface SubjectTypesInfo {
  /** Length of the features that the head reads. */
  readonly features: number;
  readonly loadMs: number;
  readonly warmUpMs: number;
}

/** A pair of networks that find what points or a box show (native/pipeline/subject_selector.h), run on the CPU. */
export interface SelectorSpec extends Pick<NetworkSpec, 'width' | 'height' | 'mean' | 'std'> {
  /** Files of the two networks. Size and normalisation are those of the encoder's input. */
  readonly encoder: string;
  readonly decoder: string;
  /** The operators of the encoder's network, as NetworkSpec.operators. */
  readonly operators?: string;
}

export interface SelectorInfo {
  /** Length of every embedding's `data`. */
  readonly embeddingBytes: number;
  readonly loadMs: number;
}

/** What the selector's encoder gives for an image: all that its decoder needs for any number of prompts. */
export interface Embedding {
  readonly data: Uint8Array;
}

/** Positions are fractions of the image's sides, 0 to 1. */
export interface SubjectPoint {
  readonly x: number;
  readonly y: number;
  /** Whether the point is in the subject. */
  readonly include: boolean;
}

export interface SubjectBox {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

export interface SelectPlan {
  /** `data` of an Embedding of the loaded selector. Borrowed until the promise settles. */
  readonly embedding: Uint8Array;
  /** The points, 1024 at most. There must be one that is included, or a box. */
  readonly points: readonly SubjectPoint[];
  readonly box?: SubjectBox;
}

export interface Selection {
  /** The candidate that the rule of native/pipeline/subject_selector.h chooses. */
  readonly mask: SubjectMask;
  /** The network's estimate of how well the mask covers what was meant, about 0 to 1. */
  readonly score: number;
}

/** Result of the classification. */
interface Subject {
  /** The likeliest type; `other` if none reaches the threshold. */
  readonly type: SubjectType;
  /** The probability of each type, in the order of `allSubjectTypes`; they sum to 1. */
  readonly probabilities: readonly number[];
}

/** Straight RGBA8, row-major without padding, `data.length === width * height * 4`. */
export interface Pixels {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
}

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Says where the subject is: 255 is in it, 0 out of it, values between are undecided. Row-major without padding. */
export interface SubjectMask {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
}

export interface MattePlan {
  readonly network: string;
  /**
   * A second loaded network, which looks at the image, at its spec's size, where the first one is in doubt, and whose
   * answer is taken where it is surer (docs/matting.md). Default: none.
   */
  readonly second?: string;
  /** Size of the result in pixels, at most that of the image in both directions. */
  readonly width: number;
  readonly height: number;
  /** `clear`: RGB is 0 where alpha is 0. `keep`: RGB stays that of the image there (ZIP). */
  readonly hiddenColour: 'clear' | 'keep';
  /** Region of interest in pixels of the result; alpha is 0 outside. */
  readonly roi?: Box;
  /** Also classifies the subject. Needs subject types with a head. */
  readonly subject?: boolean;
  /**
   * Input size instead of the spec's, of at most its area; only for a network with a free size (`sizeStep` of its
   * record), else ENGINE_MODEL. If it leaves the network in doubt, it runs again at the spec's size.
   */
  readonly input?: { readonly width: number; readonly height: number };
  /**
   * Constrains the network's output (native/matte/mask_constraint.h). Shows the whole image, at any size. Borrowed
   * until the promise settles, like the pixels.
   */
  readonly mask?: SubjectMask;
  /**
   * Whether the output of the networks is part of the result. They then see a part of the image with edges on a grid. Needs a
   * mask, and the `input` of the spec.
   */
  readonly returnOutput?: boolean;
  /**
   * The mask of a prompt that the mask's adds to; needs `returnOutput`. The networks see its part where that serves the
   * mask too (native/matte/mask_constraint.h), so that clicks on one subject share an output. Borrowed like the mask.
   */
  readonly firstMask?: SubjectMask;
  /**
   * Such an output of this image, size and networks; where this mask shows the same part, none runs. Borrowed as
   * well.
   */
  readonly cached?: NetworkOutput;
}

/** The networks' output for a part of an image: float32 values from 0 to 1, in this machine's byte order. */
export interface NetworkOutput {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  /** The part, in pixels of the result. */
  readonly view: Box;
}

export interface MatteResult {
  readonly width: number;
  readonly height: number;
  /** Bounding box of all pixels with alpha > 0; width and height are 0 if there are none. */
  readonly box: Box;
  /** Pixels with alpha of at least 128. */
  readonly foregroundPixels: number;
  /** True if every pixel has alpha 255. */
  readonly opaque: boolean;
  /** Runs of the plan's network; 2 if a smaller `input` left it in doubt, 0 if its output was kept. */
  readonly runs: number;
  /** How unsure the first network is, 0 (sure) to 1; both, if the second's answer was taken (native/matte/uncertainty.h). */
  readonly uncertainty: number;
  /**
   * `none`: the second network was not asked, because there is none or the first one was sure; `declined`: its
   * answer was no surer; `taken`: the matte is its answer.
   */
  readonly secondLook: 'none' | 'declined' | 'taken';
  /** Waiting for a worker, and for the device with `maxBatch`. */
  readonly queueMs: number;
  readonly prepareMs: number;
  /** Runs of all networks; with `maxBatch`, the time of whole batches. */
  readonly inferMs: number;
  /** Time for the classification after the network's run, waiting for the detector included. */
  readonly subjectMs: number;
  readonly matteMs: number;
  /** Present if the plan asked to keep it, and it was not already. */
  readonly output?: NetworkOutput;
  /** Present if the plan asked for it. */
  readonly subject?: Subject;
}

/** A black shadow: the subject's alpha, moved and blurred. Lengths in pixels of the canvas. */
export interface DropShadow {
  /** 0 to 1: the shadow's alpha inside a large subject. */
  readonly opacity: number;
  /** Standard deviation, 0.1 to 4096; nothing is drawn further than ceil(3 * sigma) from the moved box. */
  readonly sigma: number;
  readonly offsetX: number;
  readonly offsetY: number;
  /** Rows above the lower border over which the shadow fades out, if the border cuts the subject; 0: none. */
  readonly fade: number;
}

/** Geometry and layers of a result, in whole pixels. */
export interface ComposePlan {
  /** Size of the canvas, which is the result. */
  readonly width: number;
  readonly height: number;
  /** Part of the image that is shown; lies inside the image. */
  readonly source: Box;
  /** Where that part lies on the canvas, inside it. A size other than the source's scales by any factor. */
  readonly target: Box;
  /** Straight RGBA behind everything. */
  readonly colour?: readonly [number, number, number, number];
  /** An image of the canvas's size behind everything, instead of `colour`. Borrowed like the pixels. */
  readonly background?: Pixels;
  readonly shadow?: DropShadow;
}

export interface ComposeResult {
  /** Of the subject on the canvas, without shadow and background; width and height are 0 if there is none. */
  readonly box: Box;
  /** True if every pixel of the result has alpha 255. */
  readonly opaque: boolean;
}

export interface PngOptions {
  /** `rgba`: colour type 6. `alpha`: the alpha channel alone as 8-bit gray, colour type 0. */
  readonly channels: 'rgba' | 'alpha';
  /** Compression effort: 1 fastest, 9 smallest. */
  readonly effort: number;
  /** ICC profile, written as iCCP. */
  readonly icc?: Uint8Array;
  /** Pixels per metre (x, y), written as pHYs. */
  readonly pixelsPerMetre?: readonly [number, number];
}

/** A GPU and the libraries that use it. Versions as texts, for example 13.0; empty, and 0 bytes, where it is not known. */
export interface Gpu {
  readonly id: number;
  readonly name: string;
  readonly computeCapability: string;
  readonly memoryBytes: number;
  /** Version of the driver, and the newest CUDA that it supports. */
  readonly driver: string;
  readonly driverCuda: string;
  /** Version of the CUDA runtime that ONNX Runtime uses. */
  readonly cuda: string;
  /** Empty without TensorRT. */
  readonly tensorrt: string;
}

/** A message of ONNX Runtime. `level`: 0 verbose, 1 information, 2 warning, 3 error, 4 fatal. */
export interface RuntimeMessage {
  readonly level: number;
  readonly text: string;
}

/**
 * What of a network is being opened: for each GPU and size of batch a copy of it, one after the other. Each may take
 * minutes where TensorRT compiles it, and ONNX Runtime does not say how far it is.
 */
export interface OpeningStep {
  readonly network: string;
  /** It is opened to measure this device, one of `steps`. */
  readonly measured?: Provider;
  /** Number of the GPU; of a copy on the CPU where there are several, else undefined there. */
  readonly device?: number;
  /** Images in its batch. */
  readonly batch: number;
  /** The step in progress, from 1 to `steps`; the last ones are left out if not all sizes fit the device. */
  readonly step: number;
  readonly steps: number;
  /** Seconds since the first step began. */
  readonly seconds: number;
}

/** Jobs of every kind, loading included. Jobs that were refused are not counted. */
export interface EngineStats {
  readonly queued: number;
  readonly running: number;
  readonly done: number;
  readonly failed: number;
  /** Jobs that `cancel` and `close` have ended. */
  readonly cancelled: number;
  /** Bytes that networks on the CPU hold between runs for their next one. */
  readonly keptBytes: number;
  /** Networks that `load` is opening now, by their names. */
  readonly opening: readonly OpeningStep[];
  /** The devices of the loaded networks, in the order of `deviceIds`. Empty on the CPU without `maxBatch` and copies. */
  readonly devices: readonly DeviceStats[];
}

/** What a device has done since its networks were loaded. */
interface DeviceStats {
  readonly id: number;
  /** Why the device takes no work now; absent: it does. A lost device is checked again after 5 s to 5 minutes. */
  readonly lost?: string;
  readonly losses: number;
  /** Batches by the number of their images; index 0 is unused. */
  readonly batches: readonly number[];
  /** Images by how long they waited for their batch: at most so many milliseconds and more than those before; the last is Infinity. */
  readonly waits: readonly (readonly [upToMs: number, images: number])[];
  readonly waitedMs: number;
  /** Memory of the GPU that the loaded networks, measured, and jobs take, and how much they may; 0: not known. Absent on the CPU. */
  readonly memoryBytes?: number;
  readonly memoryLimitBytes?: number;
}

/**
 * `pixels.data` is borrowed from the call until its promise settles: the caller must neither write to it nor
 * transfer it. It may be given to several encodePng at once, but not to two jobs of which one is a matte or a
 * composition (RangeError). `id`, 0 or a positive integer, identifies the job for `cancel` and must not be in
 * use.
 *
 * Threads: matte, embed and select run on one of `workers`; compose, encodePng and loading on one of
 * `pixelThreads`. Each kind starts in the order of the calls.
 */
export interface NativeEngine {
  /**
   * Opens a network, checks its shapes, runs it once and keeps it. A network of that name is replaced; jobs
   * that use the old one finish on it. Rejects with ENGINE_MODEL or ENGINE_RUNTIME.
   */
  load(spec: NetworkSpec): Promise<NetworkInfo>;
  /** Loads the subject classifier as `load` does a network; jobs that use an older one finish on it. */
  loadSubjectTypes(spec: SubjectTypesSpec): Promise<SubjectTypesInfo>;
  /** Loads the selector as `load` does a network, without running it. Jobs that use an older one finish on it. */
  loadSelector(spec: SelectorSpec): Promise<SelectorInfo>;
  /** Encodes an image for `select`. Rejects with ENGINE_MODEL before loadSelector. */
  embed(id: number, pixels: Pixels): Promise<Embedding>;
  /**
   * Finds what the points and the box show. Rejects with ENGINE_MODEL before loadSelector, with ENGINE_BAD_INPUT for an
   * embedding of another length than its own.
   */
  select(id: number, plan: SelectPlan): Promise<Selection>;
  /**
   * Drops all networks, the selector and the subject classifier, and returns their memory to the system. Jobs given before
   * finish on them and keep them until then; jobs given before the next load reject with ENGINE_MODEL.
   */
  unload(): Promise<void>;
  /**
   * Estimates the matte and writes it into `pixels.data`: the first width * height * 4 bytes of the plan's
   * size are the result. Alpha of the input is multiplied with the matte. After a rejection the pixels are
   * unchanged if the job was still waiting, else undefined.
   */
  matte(id: number, pixels: Pixels, plan: MattePlan): Promise<MatteResult>;
  /**
   * Crops, scales and places the image, draws its shadow and composites it over the background. The first
   * width * height * 4 bytes of the plan's size are the result, so `pixels.data` may be longer than the image
   * and must be if the canvas is larger. After a rejection as for `matte`.
   */
  compose(id: number, pixels: Pixels, plan: ComposePlan): Promise<ComposeResult>;
  /** Encodes a PNG (8 bit, not interlaced). Does not change `pixels`. */
  encodePng(id: number, pixels: Pixels, options: PngOptions): Promise<Buffer>;
  /** True if the job was still waiting or running; its promise then rejects with ENGINE_CANCELLED. */
  cancel(id: number): boolean;
  stats(): EngineStats;
  /** Returns the GPUs in the order of `deviceIds`; none with the provider `cpu`. */
  gpus(): readonly Gpu[];
  /**
   * Refuses new jobs, lets the others finish for `graceMs` milliseconds, cancels the rest with ENGINE_CLOSED,
   * joins all threads and frees the networks. May be called again; the shortest grace period counts.
   */
  close(graceMs: number): Promise<void>;
}

export interface NativeModule {
  readonly abi: number;
  /**
   * `simd`: x86-64-v4, x86-64-v3 or baseline. `onnxruntime`: '' before the first Engine. `instructionSets`:
   * those of native/core/cpu.h, for example ['avx512_vnni', 'avx512', 'avx2']. `operators`: those of them that
   * Cutout's operators have kernels for, best first; `refusedOperators`: those whose kernels computed a small product
   * wrongly when they were first looked for.
   */
  versions(): {
    readonly addon: string;
    readonly simd: string;
    readonly onnxruntime: string;
    readonly instructionSets: readonly string[];
    readonly operators: readonly string[];
    readonly refusedOperators: readonly string[];
  };
  /**
   * Ends the process after `ms` milliseconds with exit status `code`, whatever its threads do: a usual exit waits for those
   * that a library holds. Whatever is not written by then is lost.
   */
  exitAfter(ms: number, code: number): void;
  /** Compute capability, for example 8.9, of each GPU that NVIDIA's driver shows to this process; empty without a usable driver. */
  computeCapabilities(): readonly string[];
  /**
   * Warnings and errors of ONNX Runtime since the last call, in this process, the oldest first. With the provider
   * `cpu` only those of the library itself; failures are errors in any case.
   */
  takeLog(): readonly RuntimeMessage[];
  /**
   * Throws ENGINE_RUNTIME if the library at `runtimePath` cannot be used; ENGINE_PROVIDER, ENGINE_DRIVER or
   * ENGINE_DEVICE if the GPU cannot. Nothing falls back to the CPU.
   */
  readonly Engine: new (
    options: EngineOptions,
  ) => NativeEngine;
}
