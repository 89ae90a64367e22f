import type { OutputInfo, Sharp } from 'sharp';
import { ImageError, orNoThread } from './errors.ts';
import type { JobLimits } from './types.ts';

/**
 * Runs one libvips job on libuv's pool. A job cannot be interrupted, so an abort is noticed before and after
 * it (the signal's reason is thrown). libvips itself gives up after `timeoutSeconds` (ImageError `timeout`),
 * except inside the WebP encoder. NoThreadError without a thread; other errors are thrown as sharp throws them.
 */
export async function runJob(
  image: Sharp,
  { signal, timeoutSeconds = 0 }: JobLimits,
): Promise<{ data: Buffer; info: OutputInfo }> {
  signal?.throwIfAborted();
  const started = performance.now();
  const result = await image
    .timeout({ seconds: timeoutSeconds })
    .toBuffer({ resolveWithObject: true })
    .catch((error: unknown) => {
      signal?.throwIfAborted();
      // Decided by the clock: libvips keeps one error text for all threads, which may belong to another job.
      const expired = timeoutSeconds > 0 && performance.now() - started >= timeoutSeconds * 1000;
      throw expired
        ? new ImageError('timeout', 'The image could not be processed in time.', error)
        : orNoThread(error);
    });
  signal?.throwIfAborted();
  return result;
}
