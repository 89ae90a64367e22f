import os from 'node:os';

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
 * Threads for `cores` (by default those this process may use: affinity and container limits count). A wish
 * is taken as it is.
 *
 * One run alone may use every core, because all runs share one pool; a second worker fills the cores where
 * a run cannot be split. More workers only on larger machines: each holds about 0.6 GB while it runs.
 */
export function chooseThreads(wishes: ThreadWishes = {}, cores: number = os.availableParallelism()): Threads {
  const gpu = wishes.provider !== undefined && wishes.provider !== 'cpu';
  return {
    workers: wishes.workers ?? Math.min(cores, Math.max(2, Math.ceil(cores / 4))),
    intraOpThreads: wishes.intraOpThreads ?? (gpu ? 1 : cores),
    pixelThreads: cores,
  };
}

/** For the start-up lines, for example "2 cores: 2 workers x 2 threads, 2 pixel threads". */
export function describeThreads(threads: Threads, cores: number = os.availableParallelism()): string {
  const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`;
  return `${count(cores, 'core')}: ${count(threads.workers, 'worker')} x ${count(threads.intraOpThreads, 'thread')}, ${count(threads.pixelThreads, 'pixel thread')}`;
}
