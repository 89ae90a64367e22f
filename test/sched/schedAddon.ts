import { createRequire } from 'node:module';
import path from 'node:path';
import { root } from '../../bench/lib/paths.ts';

/** [images, nanoseconds of a run]. */
export type Bucket = readonly [size: number, latency: number];

export interface Step {
  /** The batch that was started, if any: an index of the buckets, and its runs. */
  readonly bucket?: number;
  readonly members?: readonly number[];
  readonly wake?: number;
}

export interface Ended {
  readonly runs: readonly number[];
  readonly cancelled: readonly number[];
}

/** BatchQueue of native/sched/batch_queue.h. Times and durations are nanoseconds. */
export interface BatchQueue {
  push(id: number, arrival: number): boolean;
  cancel(id: number): 'unknown' | 'removed' | 'in batch' | 'batch abandoned';
  next(now: number): Step;
  finish(): Ended;
  lose(): Ended;
  restore(): void;
  shrink(size: number): boolean;
  /** Returns those that were cancelled. */
  retry(): readonly number[];
}

interface SchedAddon {
  readonly Queue: new (buckets: readonly Bucket[], maxDelay: number) => BatchQueue;
}

const file = path.join(root, 'build', 'native', 'Release', 'cutout_sched_test.node');

export const { Queue } = createRequire(import.meta.url)(file) as SchedAddon;
