import os from 'node:os';

/** How the cores of a machine are shared out; see docs/decisions/0010 for the measurements behind it. */
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
 * Threads for `cores` (by default those this process may use: affinity and container limits count).
 * A wish is taken as it is, and what was not wished for follows from it.
 */
export function chooseThreads(wishes: ThreadWishes = {}, cores: number = os.availableParallelism()): Threads {
  const gpu = wishes.provider !== undefined && wishes.provider !== 'cpu';
  const workers = wishes.workers ?? defaultWorkers(cores);
  const intraOpThreads = wishes.intraOpThreads ?? (gpu ? 1 : Math.max(1, Math.ceil(cores / workers)));
  return { workers, intraOpThreads, pixelThreads: cores };
}

const defaultWorkers = (cores: number): number => Math.max(1, Math.min(2, cores));

/** For the start-up lines, for example "2 cores: 2 workers x 2 threads, 2 pixel threads". */
export function describeThreads(threads: Threads, cores: number = os.availableParallelism()): string {
  const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`;
  return `${count(cores, 'core')}: ${count(threads.workers, 'worker')} x ${count(threads.intraOpThreads, 'thread')}, ${count(threads.pixelThreads, 'pixel thread')}`;
}
