/**
 * The whole native surface. `binding/` implements it, `src/engine/addon.ts` loads it and compares `abi`,
 * and test/contract/engine.ts checks it. Option names are the same here and in C++.
 *
 * Nothing here blocks the JavaScript thread. Caller bugs (wrong type, wrong length) throw synchronously
 * as TypeError or RangeError; everything else rejects with an Error that has one of `EngineCode` as `code`.
 */
export const ABI = 6;

export type Provider = 'cpu' | 'cuda' | 'tensorrt';

const ENGINE_CODES = [
  /** The pixels cannot be worked on. */
  'ENGINE_BAD_INPUT',
  /** `queueLimit` jobs are waiting already. */
  'ENGINE_QUEUE_FULL',
  /** By `cancel`. */
  'ENGINE_CANCELLED',
  /** `deadlineMs` passed. */
  'ENGINE_DEADLINE',
  /** `close` was called: before the job came, or its grace ended before the job did. */
  'ENGINE_CLOSED',
  /** The network's file is missing, damaged or of another shape, no such network is loaded, or one gave infinity or NaN. */
  'ENGINE_MODEL',
  /** ONNX Runtime's library, the GPU asked for or the addon cannot be used, or the system starts no more threads. */
  'ENGINE_RUNTIME',
  /** An allocation was refused: this job failed, others go on. */
  'ENGINE_OUT_OF_MEMORY',
  'ENGINE_INTERNAL',
] as const;

type EngineCode = (typeof ENGINE_CODES)[number];

export const isEngineCode = (code: unknown): code is EngineCode =>
  (ENGINE_CODES as readonly unknown[]).includes(code);

/** What src/engine throws and rejects with. The addon's own errors are plain Errors with the same codes. */
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
  readonly provider: Provider;
  readonly deviceId: number;
  /** Jobs that may run a network at the same time. */
  readonly workers: number;
  /** Threads of one network run, its worker included; runs at the same time share the others. */
  readonly intraOpThreads: number;
  /** Threads for pixel work (resampling, matte, encoding). */
  readonly pixelThreads: number;
  /** Jobs that may wait for a thread, of both kinds; one more is rejected with ENGINE_QUEUE_FULL. */
  readonly queueLimit: number;
  /** Milliseconds without a run after which its memory goes back to the system, at most a day; 0 = never. */
  readonly idleReleaseMs: number;
}

export interface NetworkSpec {
  readonly name: string;
  /** File of the prepared network (src/models/prepare.ts), or one that an earlier `saveTo` left. */
  readonly path: string;
  /**
   * File where the network is left as optimised for this processor by this ONNX Runtime, its weights beside it
   * as `<saveTo>.data`. Opening that copy takes a fraction of the time and maps the weights.
   */
  readonly saveTo?: string;
  /** Input size in pixels; the image is stretched to it. */
  readonly width: number;
  readonly height: number;
  /** (value - mean) / std, value in 0..255, per RGB channel. */
  readonly mean: readonly [number, number, number];
  readonly std: readonly [number, number, number];
  /** Output 0: a probability in 0..1, or a logit that still needs the sigmoid. */
  readonly output: 'probability' | 'logit';
  /** masks (default): what it draws too solid is corrected before refinement; mattes: its alpha is believed. */
  readonly taughtOn?: 'masks' | 'mattes';
}

export interface NetworkInfo {
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Milliseconds to open the network and for the first (warm-up) run. */
  readonly loadMs: number;
  readonly warmUpMs: number;
}

/** Kinds of subject, in the order of everything that lists them. */
export const SUBJECT_TYPES = [
  'person',
  'product',
  'animal',
  'car',
  'transportation',
  'graphic',
  'other',
] as const;

export type SubjectType = (typeof SUBJECT_TYPES)[number];

/** Weights of the head that tells types from features; meaning and lengths: native/classify/head.h. */
export interface SubjectHead {
  /** Units of the hidden layer; 0: there is none, and no `second`. */
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
  /** A prepared network of two outputs: maps of kinds of things, and of features. */
  readonly detector: NetworkSpec;
  /** Without it features can be had and no types. */
  readonly head?: SubjectHead;
}

export interface SubjectTypesInfo {
  /** Numbers that `describe` gives. */
  readonly features: number;
  readonly loadMs: number;
  readonly warmUpMs: number;
}

/** What a subject was found to be. */
export interface Subject {
  /** The likeliest type; `other` where none is likely enough. */
  readonly type: SubjectType;
  /** In the order of SUBJECT_TYPES; they sum to 1. */
  readonly probabilities: readonly number[];
}

/** Where the subject of an image is: values 0..1, rows without padding, of any size. */
export interface MatteMap {
  readonly data: Float32Array;
  readonly width: number;
  readonly height: number;
}

/** A job's time limit. */
interface Deadline {
  /** Milliseconds from the call; checked when the job starts and between its steps. ENGINE_DEADLINE when it has passed. */
  readonly deadlineMs?: number;
}

export interface DescribePlan extends Deadline {
  /** Borrowed until the promise settles, like the pixels. */
  readonly matte: MatteMap;
}

export interface Description {
  /** native/classify/features.h. */
  readonly features: Float32Array;
  /** Absent without a head. */
  readonly subject?: Subject;
}

/** Straight RGBA8, rows without padding, `data.length === width * height * 4`. */
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

export interface MattePlan extends Deadline {
  readonly network: string;
  /** Size of the result, at most the size of the image in both directions. */
  readonly width: number;
  readonly height: number;
  /** `clear`: RGB 0 where alpha is 0. `keep`: the background's colours stay there (ZIP). */
  readonly hiddenColour: 'clear' | 'keep';
  /** In pixels of the result; alpha is 0 outside. */
  readonly roi?: Box;
  /**
   * `on` (default): alpha and colours of unsure edges are worked out from the image itself at the result's size
   * (native/matte/refine.h). `off`: the network's alpha is upsampled, RGB stays as it is wherever alpha is not 0.
   */
  readonly refine?: 'on' | 'off';
  /** Finds out the subject's type, beside the network. Needs subject types with a head. */
  readonly subject?: boolean;
  /**
   * Size of the network's input instead of the spec's, of at most its area, for a network whose file leaves the size
   * free (`sizeStep` of its record); ENGINE_MODEL for any other. Where the answer is not decided, the network runs again
   * at the spec's size.
   */
  readonly input?: { readonly width: number; readonly height: number };
}

export interface MatteResult {
  readonly width: number;
  readonly height: number;
  /** Smallest rectangle with every pixel of alpha > 0; width and height 0 when there is none. */
  readonly box: Box;
  /** Pixels with alpha of at least 128. */
  readonly foregroundPixels: number;
  /** True when every pixel has alpha 255. */
  readonly opaque: boolean;
  /** Of the network; 2 when the answer at a smaller `input` was not decided. */
  readonly runs: number;
  readonly queueMs: number;
  readonly prepareMs: number;
  readonly inferMs: number;
  /** Spent on the subject's type after the run, waiting for the detector included. */
  readonly subjectMs: number;
  readonly matteMs: number;
  /** Where the plan asked for it. */
  readonly subject?: Subject;
}

/** A black shadow: the subject's alpha, moved and blurred. Lengths in pixels of the canvas. */
export interface DropShadow {
  /** 0 to 1, what an inner point of a large subject gets. */
  readonly opacity: number;
  /** Of the Gaussian, 0.1 to 4096. Nothing is drawn further than ceil(3 * sigma) from the moved box. */
  readonly sigma: number;
  readonly offsetX: number;
  readonly offsetY: number;
  /** Rows over which it fades out above the lower border of a canvas that cuts the subject; 0: it does not. */
  readonly fade: number;
}

/** Geometry and layers of a result, in whole pixels. */
export interface ComposePlan extends Deadline {
  /** Of the canvas, which is the result. */
  readonly width: number;
  readonly height: number;
  /** Part of the image that is shown, inside it. */
  readonly source: Box;
  /** Where that lies on the canvas, inside it. Another size than the source's scales by any factor. */
  readonly target: Box;
  /** Straight RGBA behind everything. */
  readonly colour?: readonly [number, number, number, number];
  /** An image of the canvas's size behind everything, instead of `colour`. Borrowed like the pixels. */
  readonly background?: Pixels;
  readonly shadow?: DropShadow;
}

export interface ComposeResult {
  /** Of the subject on the canvas, without shadow and background; width and height 0 when there is none. */
  readonly box: Box;
  /** True when every pixel of the result has alpha 255. */
  readonly opaque: boolean;
  readonly queueMs: number;
  readonly composeMs: number;
}

export interface PngOptions extends Deadline {
  /** `rgba`: colour type 6. `alpha`: the alpha channel alone as 8-bit gray, colour type 0. */
  readonly channels: 'rgba' | 'alpha';
  /** 1 fastest, 9 smallest. */
  readonly effort: number;
  /** ICC profile, written as iCCP. */
  readonly icc?: Uint8Array;
  /** Pixels per metre (x, y), written as pHYs. */
  readonly pixelsPerMetre?: readonly [number, number];
}

/** Jobs of every kind, loading included. What was refused at once is in none of the counts. */
export interface EngineStats {
  readonly queued: number;
  readonly running: number;
  readonly done: number;
  /** Deadlines included. */
  readonly failed: number;
  /** By `cancel` and by `close`. */
  readonly cancelled: number;
  /** Memory that networks on the CPU do not use now and keep for their next run. */
  readonly keptBytes: number;
}

/**
 * `pixels.data` is borrowed from the call until its promise settles: the caller neither writes to it nor
 * transfers it in between, and may hand it to several encodePng at once but not to two jobs of which one
 * is a matte or a composition (RangeError). `id`, 0 or a positive integer, names the job for `cancel` and must not be in use.
 *
 * Threads: matte and describe run on one of `workers`, compose, encodePng and the loading on one of `pixelThreads`; each
 * starts in the order they came.
 */
export interface NativeEngine {
  /**
   * Opens a network, checks its shapes, runs it once and keeps it; a name loaded before is replaced, jobs
   * that use the old one finish on it. Rejects with ENGINE_MODEL or ENGINE_RUNTIME.
   */
  load(spec: NetworkSpec): Promise<NetworkInfo>;
  /** As load, for what tells subject types apart; jobs that use an older one finish on it. */
  loadSubjectTypes(spec: SubjectTypesSpec): Promise<SubjectTypesInfo>;
  /**
   * Drops every network and what tells subject types, and gives their memory back to the system. Jobs that were given
   * before finish on them and keep them so long; jobs that come before the next load reject with ENGINE_MODEL.
   */
  unload(): Promise<void>;
  /**
   * The type of a subject and the numbers it is told by, under a matte that is already known. Changes neither
   * `pixels` nor matte. Rejects with ENGINE_MODEL before loadSubjectTypes.
   */
  describe(id: number, pixels: Pixels, plan: DescribePlan): Promise<Description>;
  /**
   * Finds the subject and writes its matte into `pixels.data`: the first width * height * 4 bytes of the
   * plan's size are the result. Alpha that was there before is multiplied with the matte. After a
   * rejection the pixels are unchanged if the job was still waiting, else undefined.
   */
  matte(id: number, pixels: Pixels, plan: MattePlan): Promise<MatteResult>;
  /**
   * Crops, scales and places the image, draws its shadow and lays it over the background. The first
   * width * height * 4 bytes of the plan's size are the result, so `pixels.data` may be longer than the
   * image and must be when the canvas is larger. After a rejection as for `matte`.
   */
  compose(id: number, pixels: Pixels, plan: ComposePlan): Promise<ComposeResult>;
  /** Writes a PNG (8 bit, not interlaced). Does not change `pixels`. */
  encodePng(id: number, pixels: Pixels, options: PngOptions): Promise<Buffer>;
  /** True if the job was still waiting or running; its promise then rejects with ENGINE_CANCELLED. */
  cancel(id: number): boolean;
  stats(): EngineStats;
  /**
   * Refuses new jobs, lets the others finish for `graceMs`, cancels the rest with ENGINE_CLOSED, joins all
   * threads and frees the networks. May be called again; the shortest grace counts.
   */
  close(graceMs: number): Promise<void>;
}

export interface NativeModule {
  readonly abi: number;
  /**
   * `simd`: x86-64-v4, x86-64-v3 or baseline. `onnxruntime`: '' before the first Engine. `instructionSets`:
   * those of native/core/cpu.h, for example ['avx512_vnni', 'avx512', 'avx2'].
   */
  versions(): {
    readonly addon: string;
    readonly simd: string;
    readonly onnxruntime: string;
    readonly instructionSets: readonly string[];
  };
  /** Throws ENGINE_RUNTIME when the library at `runtimePath` cannot be used. */
  readonly Engine: new (
    options: EngineOptions,
  ) => NativeEngine;
}
