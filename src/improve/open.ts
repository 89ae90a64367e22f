import type { Sql } from '../store/database.ts';
import { ImproveTable } from '../store/improveTable.ts';
import { folderBucket } from './bucket.ts';
import { Improve } from './improve.ts';
import { type S3Options, s3Bucket } from './s3.ts';

export interface OpenImproveOptions {
  readonly database: Sql;
  readonly perDay: number;
  readonly folder: string;
  /** Replaces the folder. */
  readonly s3: S3Options | undefined;
}

const sweepMilliseconds = 600_000;

export const openImprove = ({ database, perDay, folder, s3 }: OpenImproveOptions): Improve =>
  new Improve({
    table: new ImproveTable(database),
    bucket: s3 ? s3Bucket(s3) : folderBucket(folder),
    perDay,
    now: Date.now,
  });

/**
 * Sweeps now and on a timer that does not keep the process alive. `onError` receives the error of a failed
 * sweep; the next one tries again. Returns a function that stops it.
 */
export function keepSwept(improve: Improve, onError: (error: unknown) => void): () => void {
  const sweep = () => void improve.sweep().catch(onError);
  sweep();
  const timer = setInterval(sweep, sweepMilliseconds);
  timer.unref();
  return () => clearInterval(timer);
}
