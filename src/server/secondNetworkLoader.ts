import { messageOf } from '../errors.ts';
import type { Observer } from '../models/observer.ts';

interface SecondNetworkOptions {
  readonly name: string;
  /** Whether it is loaded already. */
  readonly loaded: boolean;
  /** Fetches it where it is missing, and loads it. Rejects with ModelError or EngineError. */
  readonly open: (fetch: boolean, signal: AbortSignal) => Promise<unknown>;
  readonly observer: Pick<Observer, 'notice'>;
}

/** The network that looks at images in doubt. A server starts where it is missing, and fetches it once it is ready. */
export class SecondNetworkLoader {
  readonly name: string;
  readonly #options: SecondNetworkOptions;
  readonly #stopping = new AbortController();
  #loaded: boolean;

  constructor(options: SecondNetworkOptions) {
    this.name = options.name;
    this.#options = options;
    this.#loaded = options.loaded;
  }

  /** Whether images can be given to it. */
  get loaded(): boolean {
    return this.#loaded;
  }

  /** Loads it again where it was loaded, without fetching anything. */
  async reload(): Promise<void> {
    if (this.#loaded) await this.#options.open(false, this.#stopping.signal);
  }

  /** Fetches and loads it; says so, or why that failed. Never rejects. */
  async fetch(): Promise<void> {
    const { open, observer } = this.#options;
    if (this.#loaded || this.#stopping.signal.aborted) return;
    observer.notice(`${this.name} is fetched. Until it is there, the first network runs alone.`);
    try {
      await open(true, this.#stopping.signal);
      this.#loaded = true;
      observer.notice(`${this.name} is there now and looks at images that leave the first network in doubt.`);
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      observer.notice(`${this.name} cannot be used, and the first network runs alone: ${messageOf(error)}`);
    }
  }

  /** Ends a fetch, and none begins from now on. */
  stop(): void {
    this.#stopping.abort(new Error('stopped'));
  }
}
