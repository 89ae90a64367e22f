import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { serialize } from 'node:v8';
import { ImageError, imageErrorFrom, NoThreadError } from '../errors.ts';
import { overdueAfter } from '../job.ts';
import type { JobLimits, Probe, Raster } from '../types.ts';

/** What the process reads from its standard input, serialised. */
export interface AvifTask {
  readonly file: Uint8Array;
  readonly probe: Probe;
  /** Milliseconds after which the process ends itself, in case nobody is left who ends it. */
  readonly ms: number;
}

/** Milliseconds that starting and ending the process may take beside the decoding. */
const processMs = 10_000;

/** Bytes of a process with Node.js and libvips. */
const processBytes = 70e6;

/** Upper bound of the bytes that decoding takes beside the file, the pixels included, in both processes. */
export const avifBytes = ({ width, height }: Probe, file: Uint8Array): number =>
  // The decoder's planes, and the pixels in either process; the file while it is sent, and where it arrives.
  width * height * (8 + 4 + 4) + 3 * file.length + processBytes;

/** Exit status of a process that could not decode the image. */
export const undecodable = 2;

/**
 * Collects the output of the process into `pixels`. Resolves with what it says of the image that it could not decode, or of
 * its crash; undefined if it succeeded. Rejects if the program did not work, which is not the image's fault.
 */
function outputOf(child: ChildProcessWithoutNullStreams, pixels: Uint8Array): Promise<string | undefined> {
  let received = 0;
  let failure = '';
  child.stdout.on('data', (piece: Buffer) => {
    if (received + piece.length > pixels.length) child.kill('SIGKILL');
    else pixels.set(piece, received);
    received += piece.length;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    failure = (failure + text).slice(0, 1000);
  });
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new NoThreadError(error.message, { cause: error })));
    child.once('close', (code, signal) => {
      if (code === 0 && received === pixels.length) resolve(undefined);
      else if (code === undecodable || signal) resolve(failure || `the process ended: ${signal ?? code}`);
      else
        reject(
          new Error(`The process that decodes AVIF ended with ${code} after ${received} bytes: ${failure}`),
        );
    });
  });
}

/**
 * Decodes an AVIF to its upright pixels, straight RGBA8, in a process of its own: libvips' decoder cannot touch this process
 * and is killed by the time limit and by the signal. The file has passed `checkContainer`. Colours are as `decode` says.
 * Throws ImageError `failed_to_read_image` or `timeout`, NoThreadError where no process can be started, or the signal's
 * reason.
 */
export async function decodeAvif(
  file: Uint8Array,
  probe: Probe,
  { signal, timeoutSeconds = 0, watch }: JobLimits,
): Promise<Raster> {
  signal?.throwIfAborted();
  const { width, height } = probe;
  const ms = Math.min(overdueAfter(probe), timeoutSeconds * 1000 || Number.POSITIVE_INFINITY);
  const pixels = new Uint8Array(width * height * 4);
  const done = watch?.(ms + processMs);
  // The decoder gets nothing of the environment, in which secrets may be.
  const program = fileURLToPath(new URL('./avifProcess.js', import.meta.url));
  const child = spawn(process.execPath, ['--max-old-space-size=64', program], { env: {} });
  const kill = () => child.kill('SIGKILL');
  const timer = setTimeout(kill, ms);
  signal?.addEventListener('abort', kill);
  try {
    // A process that ended already says why in its output.
    child.stdin.on('error', () => {});
    const task: AvifTask = { file, probe, ms: ms + processMs };
    child.stdin.end(serialize(task));
    const started = performance.now();
    const failure = await outputOf(child, pixels);
    signal?.throwIfAborted();
    if (failure === undefined) return { data: pixels, width, height };
    const error = new Error(failure);
    if (performance.now() - started < ms) throw imageErrorFrom(error);
    throw new ImageError('timeout', 'The image could not be processed in time.', error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', kill);
    done?.();
  }
}
