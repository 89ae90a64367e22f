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
  /** Whether the last sweep reached the database. */
  readonly isReachable: boolean;
  /** Starts no more sweeps and resolves when the one in progress has ended. */
  stop(): Promise<void>;
}

/**
 * Sweeps the stores of a server on a timer that does not keep the process alive: renews its lease, releases
 * what has expired and what dead servers left, and writes when keys were used.
 */
export function startSweep({ lease, ledger, accounts, everyMs, onError }: SweepOptions): Sweep {
  const steps = [
    () => lease.renew(),
    () => ledger.sweep(),
    () => ledger.recover(),
    () => accounts.flush(),
  ] as const;
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
  const timer = setInterval(() => {
    sweeping ??= sweep().finally(() => {
      sweeping = undefined;
    });
  }, everyMs);
  timer.unref();
  return {
    get isReachable() {
      return isReachable;
    },
    stop: async () => {
      clearInterval(timer);
      await sweeping;
    },
  };
}
