import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { serialize } from 'node:v8';
import { ImageError, imageErrorFrom, NoThreadError, orNoThread } from '../errors.ts';
import { overdueAfter } from '../job.ts';
import type { Dimensions, JobLimits, Probe, Raster } from '../types.ts';

/** The argument of avifDecoderMain.ts, serialised, in base64. */
export interface AvifTask {
  /** Length of the file, which comes on the standard input. */
  readonly fileBytes: number;
  readonly probe: Omit<Probe, 'icc'>;
  readonly target: Dimensions;
  /** Milliseconds after which the process ends itself, in case nobody is left who ends it. */
  readonly ms: number;
}

/** Milliseconds that starting and ending the process may take beside the decoding. */
const processMs = 10_000;

/** Bytes of a process with Node.js and libvips. */
const processBytes = 85e6;

/**
 * Upper bound of the bytes that decoding takes beside the file, the pixels included, in both processes. Measured of 4 to 24
 * megapixels, with and without alpha: 18.9 for each pixel of 8 bits and 24.9 of 10, whatever the target.
 */
export const avifBytes = ({ width, height, depth }: Probe, target: Dimensions, file: Uint8Array): number =>
  // The file where it arrives, and the copies that the decoder makes of it: 3.2 times its length.
  width * height * (depth === 8 ? 20 : 26) +
  target.width * target.height * 4 +
  4 * file.length +
  processBytes;

/** Exit status of a process that could not decode the image. */
export const undecodable = 2;

/** The program avifDecoderMain.ts in a process of its own, which has begun. Throws NoThreadError where the system starts none. */
async function startProcess(task: AvifTask): Promise<ChildProcessWithoutNullStreams> {
  // The decoder gets nothing of the environment, in which secrets may be.
  const program = fileURLToPath(new URL('./avifDecoderMain.js', import.meta.url));
  try {
    const argument = serialize(task).toString('base64');
    const child = spawn(process.execPath, ['--max-old-space-size=64', program, argument], { env: {} });
    await once(child, 'spawn');
    return child;
  } catch (error) {
    throw new NoThreadError('No process could be started.', { cause: error });
  }
}

/** How a process ended, and what it says of the image that it could not decode. */
interface Ended {
  readonly complete: boolean;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly failure: string;
}

/** Collects the output of the process into `pixels`; one that has more is aborted. */
function outputOf(child: ChildProcessWithoutNullStreams, pixels: Uint8Array): Promise<Ended> {
  let received = 0;
  let failure = '';
  child.stdout.on('data', (piece: Buffer) => {
    if (received + piece.length > pixels.length) child.kill('SIGABRT');
    else pixels.set(piece, received);
    received += piece.length;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    failure = (failure + text).slice(0, 1000);
  });
  // A process that ended already says why in its output.
  child.stdin.on('error', () => {});
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.once('close', (code, signal) =>
      resolve({ complete: code === 0 && received === pixels.length, code, signal, failure }),
    );
  });
}

const crashes: ReadonlySet<string> = new Set(['SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGABRT', 'SIGTRAP']);

/** The error of a process that ended by itself without the pixels. */
function errorOf({ code, signal, failure }: Ended): Error {
  if (code === undecodable) return imageErrorFrom(orNoThread(new Error(failure)));
  const text = `The process that decodes AVIF ended with ${signal ?? code}. ${failure}`;
  // A decoder that crashes. Other signals come from outside, as where memory is short: the image is not the reason.
  if (signal && crashes.has(signal)) return imageErrorFrom(new Error(text));
  return signal ? new NoThreadError(text) : new Error(text);
}

/**
 * Decodes an AVIF to its upright pixels, straight RGBA8 of the size `target`, in a process of its own: libvips' decoder
 * cannot touch this process and is killed by the time limit and by the signal. The file has passed `checkAvif`. Colours are
 * as `decode` says.
 * Throws ImageError `failed_to_read_image` or `timeout`, NoThreadError where no process can be started or memory is short, or
 * the signal's reason.
 */
export async function decodeAvif(
  file: Uint8Array,
  probe: Probe,
  target: Dimensions,
  { signal, timeoutSeconds = 0, watch }: JobLimits,
): Promise<Raster> {
  signal?.throwIfAborted();
  const { width, height } = target;
  const ms = Math.min(overdueAfter(probe), timeoutSeconds * 1000 || Number.POSITIVE_INFINITY);
  const pixels = new Uint8Array(width * height * 4);
  const { icc: _, ...needed } = probe;
  const child = await startProcess({ fileBytes: file.length, probe: needed, target, ms: ms + processMs });
  const done = watch?.(ms + processMs);
  const kill = () => child.kill('SIGKILL');
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    kill();
  }, ms);
  signal?.addEventListener('abort', kill);
  if (signal?.aborted) kill();
  try {
    const ending = outputOf(child, pixels);
    child.stdin.end(file);
    const ended = await ending;
    signal?.throwIfAborted();
    if (ended.complete) return { data: pixels, width, height };
    const error = errorOf(ended);
    throw late ? new ImageError('timeout', 'The image could not be processed in time.', error) : error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', kill);
    kill();
    done?.();
  }
}
