import type { Engine, JobControl } from './engine.ts';
import { LoadOnce } from './loadOnce.ts';
import type { Embedding, Pixels, Selection, SelectorSpec, SelectPlan } from './types.ts';

interface SelectorOptions {
  /** Whether the networks are there. */
  readonly installed: () => Promise<boolean>;
  /** Whether `resolveSpec` may download them. */
  readonly mayDownload: boolean;
  /** Finds the networks, and downloads missing ones where that is allowed. */
  readonly resolveSpec: () => Promise<SelectorSpec>;
}

/** The networks of promptable segmentation (SAM 2): points or a box in, a mask out. */
export type Selector = Pick<LazySelector, 'available' | 'ready' | 'embed' | 'select'>;

/**
 * Loads the networks at their first use. All callers that wait share one load and leave it when their signal is aborted; it
 * continues. After a failed load the next call tries again.
 */
export class LazySelector {
  readonly #engine: Pick<Engine, 'loadSelector' | 'embed' | 'select'>;
  readonly #options: SelectorOptions;
  readonly #networks = new LoadOnce(() => this.#load());

  constructor(engine: Pick<Engine, 'loadSelector' | 'embed' | 'select'>, options: SelectorOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  /** Whether they can be used without a download. */
  async installed(): Promise<boolean> {
    return this.#networks.started || this.#options.installed();
  }

  /** Whether there are such networks. */
  async available(): Promise<boolean> {
    return this.#options.mayDownload || this.installed();
  }

  /** Called when the engine unloads its networks. */
  onUnloaded(): void {
    void this.#networks.forget();
  }

  /** Downloads and loads them where that is still to be done. */
  ready(signal?: AbortSignal): Promise<void> {
    return this.#networks.ready(signal);
  }

  async embed(pixels: Pixels, control: JobControl = {}): Promise<Embedding> {
    await this.ready(control.signal);
    return this.#engine.embed(pixels, control);
  }

  async select(plan: SelectPlan, control: JobControl = {}): Promise<Selection> {
    await this.ready(control.signal);
    return this.#engine.select(plan, control);
  }

  async #load(): Promise<void> {
    await this.#engine.loadSelector(await this.#options.resolveSpec());
  }
}
