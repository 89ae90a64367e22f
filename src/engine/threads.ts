import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Provider } from './types.ts';

/** Distribution of the machine's cores; decision 0010 has the measurements. */
export interface Threads {
  /** Network runs at the same time. */
  readonly workers: number;
  /** Threads of one network run, the worker included; concurrent runs share the others. */
  readonly intraOpThreads: number;
  readonly pixelThreads: number;
}

interface ThreadSettings {
  readonly workers?: number | undefined;
  readonly intraOpThreads?: number | undefined;
  readonly provider?: Provider | undefined;
  /** EngineOptions.maxBatch. */
  readonly maxBatch?: number | undefined;
  /** EngineOptions.deviceIds. */
  readonly devices?: number | undefined;
}

/** Cores of this process, rounded up: CPU affinity and quota of its container (control groups 2, then 1). */
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
  // "No limit" is 'max' in version 2 and -1 in version 1.
  const limited = quota !== undefined && period !== undefined && quota > 0 && period > 0;
  return limited ? Math.max(1, Math.min(cores, Math.ceil(quota / period))) : cores;
}

/** The maximum number of cores for one run; beyond them parallel efficiency drops. */
const coresOfOneRun = 8;

/**
 * Threads for `cores` (default: those this process may use). A given number is used as it is, and the other
 * one follows from it.
 *
 * Workers times threads equals the cores, with as few workers as possible: a single run is then as fast as it
 * can be, concurrent runs gain nothing from more workers, and every worker holds 0.1 GB (8 bits) to 0.6 GB (floats)
 * while it runs.
 */
export function chooseThreads(requested: ThreadSettings = {}, cores: number = availableCores()): Threads {
  const gpu = requested.provider !== undefined && requested.provider !== 'cpu';
  const threadsPerRun = requested.intraOpThreads ?? (gpu ? 1 : undefined);
  const usual = Math.max(
    1,
    gpu || threadsPerRun === undefined
      ? Math.round(cores / coresOfOneRun)
      : Math.floor(cores / threadsPerRun),
  );
  const { maxBatch = 1, devices = 1 } = requested;
  // While one batch runs on each device, the images of the next one are prepared.
  const batches = maxBatch > 1 || devices > 1 ? 2 * maxBatch * devices : 1;
  const workers = requested.workers ?? Math.max(usual, batches);
  return {
    workers,
    intraOpThreads: threadsPerRun ?? Math.max(1, Math.floor(cores / workers)),
    pixelThreads: cores,
  };
}

/** Describes the threads for the start-up log, for example "2 cores: 2 workers x 2 threads, 2 pixel threads". */
export function describeThreads(threads: Threads, cores: number = availableCores()): string {
  const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`;
  return `${count(cores, 'core')}: ${count(threads.workers, 'worker')} x ${count(threads.intraOpThreads, 'thread')}, ${count(threads.pixelThreads, 'pixel thread')}`;
}
