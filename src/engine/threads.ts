import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** How the cores of a machine are shared out; docs/decisions/0010-threads.md has the measurements. */
export interface Threads {
  /** Networks that run at the same time. */
  readonly workers: number;
  /** Threads of one network run, the worker included; runs at the same time share the others. */
  readonly intraOpThreads: number;
  /** Threads for pixel work. */
  readonly pixelThreads: number;
}

export interface ThreadWishes {
  readonly workers?: number | undefined;
  readonly intraOpThreads?: number | undefined;
  readonly provider?: 'cpu' | 'cuda' | 'tensorrt' | undefined;
}

/**
 * Cores this process may use: affinity, and the CPU quota of its container (control groups version 2, then
 * 1), rounded up. os.availableParallelism() of Node 20 does not know the quota.
 */
export function availableCores(groups = '/sys/fs/cgroup', cores: number = os.availableParallelism()): number {
  const numbers = (file: string): number[] => {
    try {
      return readFileSync(path.join(groups, file), 'utf8').trim().split(' ').map(Number);
    } catch {
      return [];
    }
  };
  const [quota, period] = [
    numbers('cpu.max'),
    [...numbers('cpu/cpu.cfs_quota_us'), ...numbers('cpu/cpu.cfs_period_us')],
  ].find((limit) => limit.length === 2) ?? [-1, 1];
  // No limit is 'max' in version 2 and -1 in version 1.
  const limited = quota !== undefined && period !== undefined && quota > 0 && period > 0;
  return limited ? Math.max(1, Math.min(cores, Math.ceil(quota / period))) : cores;
}

/**
 * Threads for `cores` (by default those this process may use). A wish
 * is taken as it is.
 *
 * One run alone may use every core, because all runs share one pool; a second worker fills the cores where
 * a run cannot be split. More workers only on larger machines: each holds about 0.6 GB while it runs.
 */
export function chooseThreads(wishes: ThreadWishes = {}, cores: number = availableCores()): Threads {
  const gpu = wishes.provider !== undefined && wishes.provider !== 'cpu';
  return {
    workers: wishes.workers ?? Math.min(cores, Math.max(2, Math.ceil(cores / 4))),
    intraOpThreads: wishes.intraOpThreads ?? (gpu ? 1 : cores),
    pixelThreads: cores,
  };
}

/** For the start-up lines, for example "2 cores: 2 workers x 2 threads, 2 pixel threads". */
export function describeThreads(threads: Threads, cores: number = availableCores()): string {
  const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`;
  return `${count(cores, 'core')}: ${count(threads.workers, 'worker')} x ${count(threads.intraOpThreads, 'thread')}, ${count(threads.pixelThreads, 'pixel thread')}`;
}
