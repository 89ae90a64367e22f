import type { OutputInfo, Sharp } from 'sharp';
import { cannotRead, ImageError, imageErrorFrom, orNoThread, otherSize } from './errors.ts';
import type { Dimensions, JobLimits } from './types.ts';

/** Milliseconds that a job may take whatever its size, and for each megapixel: some tens of times what it should. */
const allowedMs = 10_000;
const allowedPerMegapixel = 500;
/** Encoders of these formats take that many times as long as decoders and other encoders. */
const slowFactor = 5;

/** The pixels of a job; `slow`: it encodes WebP or AVIF. */
interface JobSize extends Dimensions {
  readonly slow?: boolean;
}

/** Milliseconds after which a job of this size counts as overdue. */
export const overdueAfter = ({ width, height, slow = false }: JobSize): number =>
  allowedMs + ((width * height) / 1e6) * allowedPerMegapixel * (slow ? slowFactor : 1);

/**
 * Runs one libvips job on libuv's pool. A job cannot be interrupted, so an abort is noticed before and after
 * it (the signal's reason is thrown). libvips itself gives up after `timeoutSeconds` (ImageError `timeout`),
 * except inside the WebP encoder. NoThreadError without a thread; other errors are thrown as sharp throws them.
 */
export async function runJob(
  image: Sharp,
  size: JobSize,
  { signal, timeoutSeconds = 0, watch }: JobLimits,
): Promise<{ data: Buffer; info: OutputInfo }> {
  signal?.throwIfAborted();
  const started = performance.now();
  const ended = watch?.(overdueAfter(size));
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
    })
    .finally(ended);
  signal?.throwIfAborted();
  return result;
}

/** Runs a decoder of `wanted` pixels. Throws `failed_to_read_image`, `timeout`, NoThreadError or the signal's reason. */
export async function decodePixels(
  open: () => Sharp,
  size: JobSize,
  { width, height, channels }: Dimensions & { readonly channels: number },
  limits: JobLimits,
): Promise<Uint8Array> {
  let result: Awaited<ReturnType<typeof runJob>>;
  try {
    // sharp throws some errors synchronously.
    result = await runJob(open(), size, limits);
  } catch (error) {
    limits.signal?.throwIfAborted();
    throw imageErrorFrom(error);
  }
  const { data, info } = result;
  if (info.width !== width || info.height !== height || data.length !== width * height * channels)
    throw cannotRead(otherSize);
  return new Uint8Array(data.buffer, data.byteOffset, data.length);
}
