import { createRequire } from 'node:module';
import path from 'node:path';
import { root } from '../../bench/lib/paths.ts';

/** [images, nanoseconds of a run]. */
export type Bucket = readonly [size: number, latency: number];

export interface Batch {
  readonly device: number;
  readonly shape: number;
  /** Index of the shape's buckets. */
  readonly bucket: number;
  readonly members: readonly number[];
}

export interface Step {
  readonly refused: readonly number[];
  readonly started: readonly Batch[];
  readonly wake?: number;
}

export interface Ended {
  readonly completed: readonly number[];
  readonly cancelled: readonly number[];
}

export interface Lost {
  readonly failed: readonly number[];
  readonly cancelled: readonly number[];
  readonly retried: readonly number[];
}

/** BatchQueue of native/sched/batch_queue.h. Times and durations are nanoseconds. */
export interface BatchQueue {
  addShape(buckets: readonly Bucket[]): number;
  push(id: number, flow: number, shape: number, arrival: number, deadline?: number): boolean;
  cancel(id: number): 'unknown' | 'removed' | 'in batch' | 'batch abandoned';
  next(now: number): Step;
  finish(device: number): Ended;
  lose(device: number): Lost;
  restore(device: number): void;
  shrink(shape: number, size: number): boolean;
  /** `completed` wait again. */
  retry(device: number): Ended;
}

interface SchedAddon {
  readonly Queue: new (devices: number, maxDelay: number, ageing: number) => BatchQueue;
}

const file = path.join(root, 'build', 'native', 'Release', 'cutout_sched_test.node');

export const { Queue } = createRequire(import.meta.url)(file) as SchedAddon;
