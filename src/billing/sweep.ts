import type { Accounts } from '../accounts/accounts.ts';
import { isUnavailable } from '../store/error.ts';
import type { Ledger } from './ledger.ts';
import type { ServerLease } from './serverLease.ts';

interface SweepOptions {
  readonly lease: Pick<ServerLease, 'renew'>;
  readonly ledger: Pick<Ledger, 'sweep' | 'recover'>;
  readonly accounts: Pick<Accounts, 'flush'>;
  /** Milliseconds between the starts of two sweeps. A sweep that takes longer is not overlapped by the next one. */
  readonly everyMs: number;
  /** Receives the error of a failed step, which the next sweep repeats. */
  readonly onError: (error: unknown) => void;
}

interface Sweep {
  /**
   * Whether the database can be read and written: the last renewal of the lease, which is a write, was not refused, and the
   * one in progress, if any, has not taken `everyMs`.
   */
  readonly isReachable: boolean;
  /** Sweeps without waiting for the timer, for a caller that was refused; at most five times in `everyMs`. */
  soon(): void;
  /** Starts no more sweeps and resolves when the one in progress has ended. */
  stop(): Promise<void>;
}

/**
 * Sweeps the stores of a server on timers that do not keep the process alive: renews its lease, releases
 * what has expired and what dead servers left, and writes when keys were used.
 */
export function startSweep({ lease, ledger, accounts, everyMs, onError }: SweepOptions): Sweep {
  /** When the renewal in progress began. */
  let renewing: number | undefined;
  const renew = async () => {
    renewing = performance.now();
    try {
      await lease.renew();
    } finally {
      renewing = undefined;
    }
  };
  const steps = [renew, () => ledger.sweep(), () => ledger.recover(), () => accounts.flush()] as const;
  let isReachable = true;
  // While the database is down all steps wait for it; any other failure of one does not affect the others.
  const sweep = async () => {
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        onError(error);
        if (isUnavailable(error)) {
          isReachable = false;
          return;
        }
      }
    }
    isReachable = true;
  };
  let sweeping: Promise<void> | undefined;
  let begun = performance.now();
  const begin = () => {
    if (sweeping !== undefined) return;
    begun = performance.now();
    sweeping = sweep().finally(() => {
      sweeping = undefined;
    });
  };
  const timer = setInterval(begin, everyMs);
  timer.unref();
  let early: NodeJS.Timeout | undefined;
  let stopped = false;
  return {
    get isReachable() {
      return isReachable && (renewing === undefined || performance.now() - renewing < everyMs);
    },
    soon: () => {
      if (early !== undefined || sweeping !== undefined || stopped) return;
      const wait = Math.max(0, begun + everyMs / 5 - performance.now());
      early = setTimeout(() => {
        early = undefined;
        begin();
      }, wait).unref();
    },
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      clearTimeout(early);
      await sweeping;
    },
  };
}
