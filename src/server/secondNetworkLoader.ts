import { messageOf } from '../errors.ts';
import type { Observer } from '../models/observer.ts';

interface SecondNetworkOptions {
  readonly name: string;
  /** Whether it is loaded already. */
  readonly loaded: boolean;
  /** Whether it was asked for by name: nothing is then loaded again without it. */
  readonly named: boolean;
  /** Fetches it where it is missing, and loads it. Rejects with ModelError or EngineError. */
  readonly open: (fetch: boolean, signal: AbortSignal) => Promise<unknown>;
  readonly observer: Pick<Observer, 'notice'>;
}

/** The network that looks at images in doubt. A server starts where it is missing, and fetches it once it is ready. */
export class SecondNetworkLoader {
  readonly name: string;
  readonly #options: SecondNetworkOptions;
  readonly #stopping = new AbortController();
  /** `failed`: it could not be loaded again. */
  #state: 'absent' | 'loaded' | 'failed';

  constructor(options: SecondNetworkOptions) {
    this.name = options.name;
    this.#options = options;
    this.#state = options.loaded ? 'loaded' : 'absent';
  }

  /** Whether images can be given to it. */
  get loaded(): boolean {
    return this.#state === 'loaded';
  }

  /** Loads it again where it was loaded once, without fetching anything. Rejects only where it was named. */
  async reload(): Promise<void> {
    if (this.#state === 'absent') return;
    if (this.#options.named) await this.#options.open(false, this.#stopping.signal);
    else await this.#open(false);
  }

  /** Fetches and loads it; says so, or why that failed. Never rejects. */
  async fetch(): Promise<void> {
    if (this.loaded || this.#stopping.signal.aborted) return;
    const { notice } = this.#options.observer;
    notice(`${this.name} is fetched. Until it is there, the first network runs alone.`);
    if (await this.#open(true))
      notice(`${this.name} is there now and looks at images that leave the first network in doubt.`);
  }

  async #open(fetch: boolean): Promise<boolean> {
    const { open, observer } = this.#options;
    try {
      await open(fetch, this.#stopping.signal);
      this.#state = 'loaded';
    } catch (error) {
      if (this.#stopping.signal.aborted) return false;
      if (this.loaded) this.#state = 'failed';
      observer.notice(`${this.name} cannot be used, and the first network runs alone: ${messageOf(error)}`);
    }
    return this.loaded;
  }

  /** Ends a fetch, and none begins from now on. */
  stop(): void {
    this.#stopping.abort(new Error('stopped'));
  }
}
