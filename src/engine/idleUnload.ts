import type { Engine, JobControl } from './engine.ts';
import type { MattePlan, MatteResult, Pixels } from './types.ts';

interface IdleUnloadOptions {
  /** Milliseconds without a matte after which the networks are dropped. */
  readonly afterMs: number;
  /** Loads what was dropped into the engine again. */
  readonly load: () => Promise<unknown>;
  /** Hears what happened, and how long it took in milliseconds. */
  readonly told: (what: 'unloaded' | 'loaded', ms: number) => void;
}

/**
 * An engine that drops its networks, and with them their memory, after a time without work, and loads them when the
 * next matte is asked for: all who wait share one load, and leave it when their signal is aborted. A load that failed is tried
 * again by the next call. Nothing else of the engine needs a network.
 */
export class IdleUnloadEngine implements Pick<Engine, 'matte' | 'compose' | 'encodePng'> {
  readonly #engine: Engine;
  readonly #options: IdleUnloadOptions;
  /** Fulfilled: loaded; pending: being loaded; undefined: dropped. */
  #loaded: Promise<unknown> | undefined = Promise.resolve();
  #unloading: Promise<unknown> = Promise.resolve();
  #working = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `engine` has its networks. */
  constructor(engine: Engine, options: IdleUnloadOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#wait();
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
      if (this.#working === 0) this.#wait();
    }
  }

  readonly compose: Engine['compose'] = (...call) => this.#engine.compose(...call);
  readonly encodePng: Engine['encodePng'] = (...call) => this.#engine.encodePng(...call);

  /** Drops nothing from now on; for the end of the program. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#working++;
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#rest(), this.#options.afterMs).unref();
  }

  #rest(): void {
    // An abandoned load finishes and is then unloaded.
    if (!this.#loaded) return;
    const { told } = this.#options;
    const started = performance.now();
    const loaded = this.#loaded;
    this.#loaded = undefined;
    this.#unloading = loaded
      .then(() => this.#engine.unload())
      .then(
        () => told('unloaded', performance.now() - started),
        // An engine that is closed has nothing loaded either.
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
    this.#options.told('loaded', performance.now() - started);
  }
}

/** Rejects with the signal's reason as soon as it is aborted; the work then goes on for others. */
function unlessAborted(work: Promise<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal?.reason);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    // Also of one that nobody waits for any more: what it ends with is heard.
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', abort));
  });
}
