import type { Engine, JobControl } from './engine.ts';
import type { MattePlan, MatteResult, Pixels } from './types.ts';

interface IdleUnloadOptions {
  /** Milliseconds without a matte after which the networks are unloaded. */
  readonly afterMs: number;
  /** Loads the networks into the engine again. */
  readonly load: () => Promise<unknown>;
  /** Called after each change with its duration in milliseconds. */
  readonly onChange: (what: 'unloaded' | 'loaded', ms: number) => void;
}

/**
 * Unloads the networks, and frees their memory, after a time without work, and loads them for the next matte.
 * All callers that wait share one load and leave it when their signal is aborted. After a failed load the
 * next call tries again. Of the engine's operations for a request only `matte` needs a network.
 */
export class IdleUnloadEngine implements Pick<Engine, 'matte' | 'compose' | 'encodePng'> {
  readonly #engine: Engine;
  readonly #options: IdleUnloadOptions;
  /** Fulfilled: loaded; pending: loading; undefined: unloaded. */
  #loaded: Promise<unknown> | undefined = Promise.resolve();
  #unloading: Promise<unknown> = Promise.resolve();
  #working = 0;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  /** `engine` has its networks loaded. */
  constructor(engine: Engine, options: IdleUnloadOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#scheduleUnload();
  }

  async matte(pixels: Pixels, plan: MattePlan, control: JobControl = {}): Promise<MatteResult> {
    clearTimeout(this.#timer);
    this.#working++;
    try {
      this.#loaded ??= this.#load();
      await unlessAborted(this.#loaded, control.signal);
      return await this.#engine.matte(pixels, plan, control);
    } finally {
      this.#working--;
      if (this.#working === 0) this.#scheduleUnload();
    }
  }

  readonly compose: Engine['compose'] = (...call) => this.#engine.compose(...call);
  readonly encodePng: Engine['encodePng'] = (...call) => this.#engine.encodePng(...call);

  /** Unloads nothing from now on; for shutdown. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #scheduleUnload(): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#unload(), this.#options.afterMs).unref();
  }

  #unload(): void {
    // An abandoned load finishes and is then unloaded.
    if (!this.#loaded) return;
    const { onChange } = this.#options;
    const started = performance.now();
    const loaded = this.#loaded;
    this.#loaded = undefined;
    this.#unloading = loaded
      .then(() => this.#engine.unload())
      .then(
        () => onChange('unloaded', performance.now() - started),
        // A closed engine has nothing loaded.
        () => {},
      );
  }

  async #load(): Promise<void> {
    await this.#unloading;
    const started = performance.now();
    try {
      await this.#options.load();
    } catch (error) {
      this.#loaded = undefined;
      throw error;
    }
    this.#options.onChange('loaded', performance.now() - started);
  }
}

/** Rejects with the signal's reason as soon as it is aborted; the work continues for others. */
function unlessAborted(work: Promise<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal?.reason);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    // Handles the result of work that nobody waits for any more, too.
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', abort));
  });
}
