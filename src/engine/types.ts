/**
 * The whole native surface. `binding/` implements it, `src/engine/addon.ts` loads it and compares `abi`,
 * and test/contract/engine.ts checks it. Option names are the same here and in C++.
 *
 * Nothing here blocks the JavaScript thread. Caller bugs (wrong type, wrong length) throw synchronously
 * as TypeError or RangeError; everything else rejects with an Error that has one of `EngineCode` as `code`.
 */
export const ABI = 1;

export type Provider = 'cpu' | 'cuda' | 'tensorrt';

export type EngineCode =
  | 'ENGINE_BAD_INPUT'
  | 'ENGINE_QUEUE_FULL'
  | 'ENGINE_CANCELLED'
  | 'ENGINE_DEADLINE'
  | 'ENGINE_CLOSED'
  | 'ENGINE_MODEL'
  | 'ENGINE_RUNTIME'
  | 'ENGINE_OUT_OF_MEMORY'
  | 'ENGINE_INTERNAL';

export interface EngineOptions {
  /** File of the ONNX Runtime library, opened with dlopen. */
  readonly runtimePath: string;
  readonly provider: Provider;
  readonly deviceId: number;
  /** Jobs that may run a network at the same time. */
  readonly workers: number;
  /** Threads of one network run. */
  readonly intraOpThreads: number;
  /** Threads for pixel work (resampling, matte, encoding). */
  readonly pixelThreads: number;
  /** Jobs that may wait; one more is rejected with ENGINE_QUEUE_FULL. */
  readonly queueLimit: number;
}

export interface NetworkSpec {
  readonly name: string;
  /** File of the prepared network (src/models/prepare.ts). */
  readonly path: string;
  /** Input size in pixels; the picture is stretched to it. */
  readonly width: number;
  readonly height: number;
  /** (value - mean) / std, value in 0..255, per RGB channel. */
  readonly mean: readonly [number, number, number];
  readonly std: readonly [number, number, number];
  /** Output 0: a probability in 0..1, or a logit that still needs the sigmoid. */
  readonly output: 'probability' | 'logit';
}

export interface NetworkInfo {
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Milliseconds to open the network and for the first (warm-up) run. */
  readonly loadMs: number;
  readonly warmUpMs: number;
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

export interface MattePlan {
  readonly network: string;
  /** Size of the result, at most the size of the picture in both directions. */
  readonly width: number;
  readonly height: number;
  /** `clear`: RGB 0 where alpha is 0. `keep`: the background's colours stay there (ZIP). */
  readonly hiddenColour: 'clear' | 'keep';
  /** In pixels of the result; alpha is 0 outside. */
  readonly roi?: Box;
  /** Milliseconds from now; checked when the job starts and between its steps. */
  readonly deadlineMs?: number;
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
  readonly queueMs: number;
  readonly prepareMs: number;
  readonly inferMs: number;
  readonly matteMs: number;
}

export interface PngOptions {
  /** `rgba`: colour type 6. `alpha`: the alpha channel alone as 8-bit gray, colour type 0. */
  readonly channels: 'rgba' | 'alpha';
  /** 1 fastest, 9 smallest. */
  readonly effort: number;
  /** ICC profile, written as iCCP. */
  readonly icc?: Uint8Array;
  /** Pixels per metre (x, y), written as pHYs. */
  readonly pixelsPerMetre?: readonly [number, number];
  readonly deadlineMs?: number;
}

export interface EngineStats {
  readonly queued: number;
  readonly running: number;
  readonly done: number;
  readonly failed: number;
  readonly cancelled: number;
}

/**
 * `pixels.data` is borrowed from the call until its promise settles: the caller neither writes to it nor
 * transfers it in between. `id` names the job for `cancel` and must not be in use.
 */
export interface NativeEngine {
  /** Opens a network, runs it once and keeps it. Rejects with ENGINE_MODEL or ENGINE_RUNTIME. */
  load(spec: NetworkSpec): Promise<NetworkInfo>;
  /**
   * Finds the subject and writes its matte into `pixels.data`: the first width * height * 4 bytes of the
   * plan's size are the result. Alpha that was there before is multiplied with the matte.
   */
  matte(id: number, pixels: Pixels, plan: MattePlan): Promise<MatteResult>;
  /** Writes a PNG (8 bit, not interlaced). Does not change `pixels`. */
  encodePng(id: number, pixels: Pixels, options: PngOptions): Promise<Buffer>;
  /** True if the job was still waiting or running; its promise then rejects with ENGINE_CANCELLED. */
  cancel(id: number): boolean;
  stats(): EngineStats;
  /** Refuses new jobs, lets the others finish for `graceMs`, cancels the rest, joins all threads. */
  close(graceMs: number): Promise<void>;
}

export interface NativeModule {
  readonly abi: number;
  versions(): { readonly addon: string; readonly simd: string };
  readonly Engine: new (options: EngineOptions) => NativeEngine;
}
