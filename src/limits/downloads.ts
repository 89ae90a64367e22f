import { RunningCount } from './concurrency.ts';

export interface DownloadLimits {
  /** Concurrent downloads of one account; 0: no limit. */
  readonly perAccount: number;
  /** Concurrent downloads of all accounts; 0: no limit. */
  readonly total: number;
}

export type DownloadSlot =
  | { readonly outcome: 'admitted' /** Any number of times. */; readonly leave: () => void }
  /** The account, or all accounts together, have reached the limit. */
  | { readonly outcome: 'account' | 'total' };

/** Bounds the concurrent downloads of this process. */
export class DownloadLimit {
  readonly #limits: DownloadLimits;
  readonly #running = new RunningCount();

  constructor(limits: DownloadLimits) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#running.total;
  }

  enter(account: string): DownloadSlot {
    const { perAccount, total } = this.#limits;
    if (perAccount > 0 && this.#running.of(account) >= perAccount) return { outcome: 'account' };
    if (total > 0 && this.#running.total >= total) return { outcome: 'total' };
    return { outcome: 'admitted', leave: this.#running.enter(account) };
  }
}
