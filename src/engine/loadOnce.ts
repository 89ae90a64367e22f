import { EngineError } from './types.ts';

/** A load that all callers share until it is forgotten. After ENGINE_NOT_LOADED the next call tries again. */
export class LoadOnce {
  readonly #load: () => Promise<void>;
  #loading: Promise<void> | undefined;

  /** `loaded`: the first load is done already. */
  constructor(load: () => Promise<void>, { loaded = false }: { readonly loaded?: boolean } = {}) {
    this.#load = load;
    if (loaded) this.#loading = Promise.resolve();
  }

  get started(): boolean {
    return this.#loading !== undefined;
  }

  /** Loads if necessary. A caller whose signal is aborted leaves the load, which continues. */
  async ready(signal?: AbortSignal): Promise<void> {
    this.#loading ??= this.#start();
    await unlessAborted(this.#loading, signal);
  }

  /** The next call loads again. Returns the load that is forgotten, which may still be in progress or fail. */
  forget(): Promise<void> | undefined {
    const loading = this.#loading;
    this.#loading = undefined;
    return loading;
  }

  #start(): Promise<void> {
    const loading = this.#load().catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new EngineError('ENGINE_NOT_LOADED', reason, { cause });
    });
    loading.catch(() => {
      // Another load may have begun since this one was forgotten.
      if (this.#loading === loading) this.#loading = undefined;
    });
    return loading;
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
