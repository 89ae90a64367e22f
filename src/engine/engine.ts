import { isTruncated } from './elf.ts';
import {
  type ComposePlan,
  type ComposeResult,
  type Embedding,
  EngineError,
  type EngineOptions,
  type EngineStats,
  type Gpu,
  isEngineCode,
  type MattePlan,
  type MatteResult,
  type NativeEngine,
  type NativeModule,
  type NetworkInfo,
  type NetworkSpec,
  type Pixels,
  type PngOptions,
  type RuntimeMessage,
  type Selection,
  type SelectorInfo,
  type SelectorSpec,
  type SelectPlan,
  type SubjectTypesInfo,
  type SubjectTypesSpec,
} from './types.ts';

/** Aborting rejects the job with ENGINE_CANCELLED, at once if it was still waiting. */
export interface JobControl {
  readonly signal?: AbortSignal | undefined;
}

/** Milliseconds between two looks for messages of ONNX Runtime. */
const messagesMs = 5000;

/**
 * The engine for the rest of the program: promises and AbortSignal. Misuse throws TypeError or RangeError;
 * everything else is an EngineError with a code. What a job does: `NativeEngine` (types.ts).
 */
export type Engine = Pick<NativeEngineAdapter, keyof NativeEngineAdapter>;

class NativeEngineAdapter {
  readonly #native: NativeEngine;
  readonly #relay: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #nextId = 1;

  constructor(
    native: NativeModule,
    options: EngineOptions,
    onMessage: ((message: RuntimeMessage) => void) | undefined,
  ) {
    if (isTruncated(options.runtimePath)) {
      throw new EngineError(
        'ENGINE_RUNTIME',
        `The ONNX Runtime library could not be opened: '${options.runtimePath}' is cut short.`,
      );
    }
    try {
      this.#native = new native.Engine(options);
    } catch (error) {
      throw toEngineError(error, new Error());
    } finally {
      if (onMessage) native.takeLog().forEach(onMessage);
    }
    this.#relay = onMessage ? () => native.takeLog().forEach(onMessage) : () => {};
    if (onMessage) this.#timer = setInterval(this.#relay, messagesMs).unref();
  }

  /** Opens a network, runs it once and keeps it as `spec.name`; a network of that name is replaced. */
  load(spec: NetworkSpec): Promise<NetworkInfo> {
    return withEngineErrors(this.#native.load(spec), new Error()).finally(this.#relay);
  }

  loadSubjectTypes(spec: SubjectTypesSpec): Promise<SubjectTypesInfo> {
    return withEngineErrors(this.#native.loadSubjectTypes(spec), new Error());
  }

  loadSelector(spec: SelectorSpec): Promise<SelectorInfo> {
    return withEngineErrors(this.#native.loadSelector(spec), new Error());
  }

  /** Reads `pixels.data`, which must not change until the promise settles. */
  async embed(pixels: Pixels, control: JobControl = {}): Promise<Embedding> {
    return this.#run((id) => this.#native.embed(id, pixels), control, new Error());
  }

  async select(plan: SelectPlan, control: JobControl = {}): Promise<Selection> {
    return this.#run((id) => this.#native.select(id, plan), control, new Error());
  }

  /** Drops all networks and frees their memory; jobs running on them finish first. */
  unload(): Promise<void> {
    return withEngineErrors(this.#native.unload(), new Error());
  }

  /** Works in `pixels.data`, which belongs to the engine until the promise settles. */
  async matte(pixels: Pixels, plan: MattePlan, control: JobControl = {}): Promise<MatteResult> {
    return this.#run((id) => this.#native.matte(id, pixels, plan), control, new Error());
  }

  /** The canvas replaces the image at the front of `pixels.data`. */
  async compose(pixels: Pixels, plan: ComposePlan, control: JobControl = {}): Promise<ComposeResult> {
    return this.#run((id) => this.#native.compose(id, pixels, plan), control, new Error());
  }

  /** Reads `pixels.data`, which must not change until the promise settles. */
  async encodePng(pixels: Pixels, options: PngOptions, control: JobControl = {}): Promise<Buffer> {
    return this.#run((id) => this.#native.encodePng(id, pixels, options), control, new Error());
  }

  stats(): EngineStats {
    return this.#native.stats();
  }

  gpus(): readonly Gpu[] {
    return this.#native.gpus();
  }

  /** Refuses new jobs, lets the others finish for `graceMs` milliseconds, cancels the rest with ENGINE_CLOSED. */
  close(graceMs: number): Promise<void> {
    clearInterval(this.#timer);
    return withEngineErrors(this.#native.close(graceMs), new Error()).finally(this.#relay);
  }

  async #run<T>(start: (id: number) => Promise<T>, { signal }: JobControl, called: Error): Promise<T> {
    if (signal?.aborted) {
      throw graft(
        new EngineError('ENGINE_CANCELLED', 'The job was cancelled.', { cause: signal.reason }),
        called,
      );
    }
    const id = this.#nextId++;
    const job = start(id);
    const cancel = () => {
      this.#native.cancel(id);
    };
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await withEngineErrors(job, called);
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }
}

/**
 * Starts the engine's threads; no network is loaded yet. `onMessage` receives what ONNX Runtime logs in this process,
 * within seconds. Throws EngineError as NativeModule.Engine.
 */
export const createEngine = (
  native: NativeModule,
  options: EngineOptions,
  onMessage?: (message: RuntimeMessage) => void,
): Engine => new NativeEngineAdapter(native, options, onMessage);

async function withEngineErrors<T>(job: Promise<T>, called: Error): Promise<T> {
  try {
    return await job;
  } catch (error) {
    throw toEngineError(error, called);
  }
}

/** Native errors have no JavaScript stack: they get the one of the call that started the job. */
function toEngineError(error: unknown, called: Error): unknown {
  if (!(error instanceof Error && 'code' in error && isEngineCode(error.code))) return error;
  return graft(new EngineError(error.code, error.message, { cause: error }), called);
}

function graft(error: EngineError, called: Error): EngineError {
  const frames = called.stack?.split('\n').slice(1).join('\n') ?? '';
  error.stack = `${error.name}: ${error.message}\n${frames}`;
  return error;
}
