import { once } from './retained.ts';

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
  readonly #running = new Map<string, number>();
  #total = 0;

  constructor(limits: DownloadLimits) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#total;
  }

  enter(account: string): DownloadSlot {
    const { perAccount, total } = this.#limits;
    const own = this.#running.get(account) ?? 0;
    if (perAccount > 0 && own >= perAccount) return { outcome: 'account' };
    if (total > 0 && this.#total >= total) return { outcome: 'total' };
    this.#running.set(account, own + 1);
    this.#total++;
    const leave = once(() => {
      this.#total--;
      const left = (this.#running.get(account) ?? 1) - 1;
      if (left === 0) this.#running.delete(account);
      else this.#running.set(account, left);
    });
    return { outcome: 'admitted', leave };
  }
}
