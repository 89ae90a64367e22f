import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { cannotRead, ImageError, otherSize } from '../errors.ts';
import type { JobLimits, Probe, Raster } from '../types.ts';
import type { HeicOutcome, HeicTask } from './heicWorker.ts';

/** Seconds after which decoding ends where the caller sets no limit. */
const maxSeconds = 120;

/** Memory of libheif apart from the image: its code's data, tables and the state of the HEVC decoder. */
const fixedBytes = 32 * 1024 * 1024;

type Coded = Pick<Probe, 'width' | 'height' | 'depth' | 'hasAlpha'>;

/** Bytes that libheif's own memory may have: one and a half times what it needed in decision 0219. */
function memoryBytes({ width, height, depth, hasAlpha }: Coded, file: Uint8Array): number {
  const perPixel = (depth === 8 ? 18 : 28) + (hasAlpha ? 8 : 0);
  return fixedBytes + file.length + width * height * perPixel;
}

/** Milliseconds that ending a worker may take. */
const killMs = 10_000;

/** Upper bound of the bytes that decoding takes beside the file, the pixels included. */
export const heicBytes = (coded: Coded, file: Uint8Array): number =>
  // The worker has a copy of the file beside that in libheif's memory, and a small heap.
  memoryBytes(coded, file) + file.length + coded.width * coded.height * 4 + fixedBytes;

/**
 * Decodes a HEIC to its upright pixels, straight RGBA8, in a worker of its own: libheif and libde265 as WebAssembly, which
 * cannot touch other memory, may not allocate more than the image's size allows, and are stopped with the worker by
 * the time limit and by the signal. The file has passed `readHeicHeader`. Throws ImageError `failed_to_read_image` or
 * `timeout`, or the signal's reason.
 */
export async function decodeHeic(
  file: Uint8Array,
  probe: Coded & Pick<Probe, 'premultiplied'>,
  { signal, timeoutSeconds = 0, watch }: JobLimits,
): Promise<Raster> {
  signal?.throwIfAborted();
  const { width, height, premultiplied = false } = probe;
  // A copy of its own: the bytes of a request are a part of a larger buffer, which stays here.
  const copy = Uint8Array.from(file);
  const task: HeicTask = {
    file: copy,
    memoryBytes: memoryBytes(probe, file),
    pixelBytes: width * height * 4,
    premultiplied,
  };
  const deadline = AbortSignal.timeout(1000 * (timeoutSeconds || maxSeconds));
  const worker = new Worker(new URL('./heicWorker.js', import.meta.url), {
    workerData: task,
    transferList: [copy.buffer],
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 },
  });
  const done = watch?.(1000 * (timeoutSeconds || maxSeconds) + killMs);
  let outcome: HeicOutcome;
  try {
    const until = { signal: signal ? AbortSignal.any([signal, deadline]) : deadline };
    const ended = once(worker, 'exit', until).then(() => [{ failure: 'the worker ended' }]);
    [outcome] = (await Promise.race([once(worker, 'message', until), ended])) as [HeicOutcome];
  } catch (error) {
    signal?.throwIfAborted();
    if (deadline.aborted) throw new ImageError('timeout', 'The image could not be processed in time.', error);
    const outOfMemory =
      error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
    if (!outOfMemory) throw error;
    outcome = { failure: error.message };
  } finally {
    await worker.terminate();
    done?.();
  }
  if ('failure' in outcome)
    throw cannotRead('The image data could not be decoded.', new Error(outcome.failure));
  if (outcome.width !== width || outcome.height !== height) throw cannotRead(otherSize);
  return { data: new Uint8Array(outcome.data), width, height };
}
