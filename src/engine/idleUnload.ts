import type { Engine, JobControl } from './engine.ts';
import { LoadOnce } from './loadOnce.ts';
import type { MattePlan, MatteResult, Pixels } from './types.ts';

interface IdleUnloadOptions {
  /** Milliseconds without a matte after which the networks are unloaded. */
  readonly afterMs: number;
  /** Loads the networks into the engine again. */
  readonly load: () => Promise<unknown>;
  /** Called when unloading begins. */
  readonly onUnload?: (() => void) | undefined;
  /** Called after each change with its duration in milliseconds. */
  readonly onChange: (what: 'unloaded' | 'loaded', ms: number) => void;
}

/** Milliseconds from a failed load to the next, if no call tries before. */
const retryMs = 10_000;

/**
 * Unloads the networks, and frees their memory, after a time without work, and loads them for the next matte.
 * All callers that wait share one load and leave it when their signal is aborted. After a failed load the
 * next call tries again, or after a time the engine itself. Work on other networks of the engine runs within `during`.
 */
export class IdleUnloadEngine implements Pick<Engine, 'matte' | 'compose' | 'encodePng'> {
  readonly #engine: Engine;
  readonly #options: IdleUnloadOptions;
  /** Fulfilled: loaded; pending: loading; undefined: unloaded. */
  readonly #networks = new LoadOnce(() => this.#load(), { loaded: true });
  #unloading: Promise<unknown> = Promise.resolve();
  #working = 0;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #failed = false;

  /** `engine` has its networks loaded. */
  constructor(engine: Engine, options: IdleUnloadOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#scheduleUnload();
  }

  matte(pixels: Pixels, plan: MattePlan, control: JobControl = {}): Promise<MatteResult> {
    return this.during(async () => {
      await this.#networks.ready(control.signal);
      return this.#engine.matte(pixels, plan, control);
    });
  }

  /** Unloads nothing while `work` runs, which may use further networks of the engine. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    clearTimeout(this.#timer);
    this.#working++;
    try {
      return await work();
    } finally {
      this.#working--;
      if (this.#working === 0) this.#scheduleUnload();
    }
  }

  /** False from a failed load to the next that does not fail. */
  get isUsable(): boolean {
    return !this.#failed;
  }

  readonly compose: Engine['compose'] = (...call) => this.#engine.compose(...call);
  readonly encodePng: Engine['encodePng'] = (...call) => this.#engine.encodePng(...call);

  /** Unloads nothing from now on; for shutdown. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
  }

  #scheduleUnload(): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#unload(), this.#options.afterMs).unref();
  }

  #scheduleRetry(): void {
    if (this.#stopped) return;
    const retry = () => this.during(() => this.#networks.ready()).catch(() => {});
    this.#retry = setTimeout(() => void retry(), retryMs).unref();
  }

  #unload(): void {
    // An abandoned load finishes and is then unloaded.
    const loaded = this.#networks.forget();
    if (!loaded) return;
    const { onChange } = this.#options;
    const started = performance.now();
    const unload = () => {
      this.#options.onUnload?.();
      return this.#engine.unload();
    };
    this.#unloading = loaded.then(unload).then(
      () => onChange('unloaded', performance.now() - started),
      // A closed engine has nothing loaded.
      () => {},
    );
  }

  async #load(): Promise<void> {
    await this.#unloading;
    clearTimeout(this.#retry);
    const started = performance.now();
    try {
      await this.#options.load();
    } catch (error) {
      this.#failed = true;
      this.#scheduleRetry();
      throw error;
    }
    this.#failed = false;
    this.#options.onChange('loaded', performance.now() - started);
  }
}
