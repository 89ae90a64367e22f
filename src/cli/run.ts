import { open, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { Presets, SingleBar } from 'cli-progress';
import type { Config } from '../config/readConfig.ts';
import type { CutoutResult } from '../cutout/cutout.ts';
import { type CutoutRequest, plainRequest } from '../cutout/request.ts';
import { AppError, toAppError, UserError } from '../errors.ts';
import { makeFolder } from '../folder.ts';
import { SIZE_LIMITS } from '../image/size.ts';
import { onStopSignal } from '../ops/stop.ts';
import { RequestTelemetry } from '../ops/telemetry.ts';
import { configureImages } from '../server/images.ts';
import { openCutout } from '../server/openCutout.ts';
import { findInputs, type Input } from './inputs.ts';
import { type Output, progressOn } from './modelsProgress.ts';

export interface RunOptions {
  readonly out?: string;
  readonly format: CutoutRequest['format'];
  readonly size: Exclude<CutoutRequest['size'], 'auto'>;
  readonly jobs?: number;
  readonly overwrite: boolean;
  readonly pull: boolean;
}

export const runFormats = ['auto', 'png', 'jpg', 'webp', 'zip'] as const;
export const runSizes = Object.keys(SIZE_LIMITS) as RunOptions['size'][];

/**
 * The limit of uploads does not apply to local files; this one keeps an unsuitable file from being read
 * completely.
 */
const maxBytes = 1024 ** 3;

interface Failure {
  readonly file: string;
  readonly reason: string;
}

/** The error in one sentence. */
function reasonOf(error: unknown): string {
  if (error instanceof UserError) return error.message;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (error instanceof AppError && error.status < 500)
    return `${error.title.replace(/\.$/, '')}: ${error.detail}`;
  const messages: Readonly<Record<string, string>> = {
    EACCES: 'Permission denied.',
    ENOSPC: 'The disk is full.',
    ENOENT: 'The file no longer exists.',
    EEXIST: 'The result already exists; --overwrite replaces it.',
  };
  if (typeof code === 'string' && messages[code]) return messages[code];
  const app = toAppError(error);
  const cause = app.cause instanceof Error ? ` (${app.cause.message})` : '';
  return `${app.title}: ${app.detail}${cause}`;
}

const extensionOf = ({ contentType }: CutoutResult) =>
  ({ 'image/png': '.png', 'image/jpeg': '.jpg', 'image/webp': '.webp', 'application/zip': '.zip' })[
    contentType
  ];

/** `photo.jpg` becomes `photo-cutout.png` beside it, or `photo.png` in the output folder. */
const resultFile = ({ file, stem }: Input, out: string | undefined, extension: string) =>
  out === undefined
    ? path.join(path.dirname(file), `${path.basename(stem)}-cutout${extension}`)
    : path.join(out, `${stem}${extension}`);

/** Writes the file atomically; never replaces an existing one unless `overwrite` is set. */
async function writeResult(file: string, bytes: Buffer, overwrite: boolean): Promise<void> {
  makeFolder('output folder', path.dirname(file));
  const handle = await open(file, overwrite ? 'w' : 'wx');
  try {
    await handle.writeFile(bytes);
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/** Runs `work` on every item, at most `width` at a time. Rejects with the first rejection. */
async function eachOf<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const lane = async () => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, lane));
}

function bar(out: Output, total: number): { step(): void; stop(): void } {
  if (!out.isTTY) return { step: () => {}, stop: () => {} };
  const single = new SingleBar(
    {
      stream: out,
      format: '{bar} {percentage}% | {value} of {total} images | {eta_formatted} left',
      hideCursor: true,
      clearOnComplete: true,
    },
    Presets.shades_classic,
  );
  single.start(total, 0);
  return { step: () => single.increment(), stop: () => single.stop() };
}

function summary(done: number, failures: readonly Failure[], skipped: number, seconds: number): string {
  const count = (n: number) => `${n} ${n === 1 ? 'image' : 'images'}`;
  const lines = [`${count(done)} cut out in ${seconds.toFixed(1)} s.`];
  if (skipped > 0) lines.push(`Stopped: ${count(skipped)} not started or not finished.`);
  if (failures.length > 0) lines.push(`${count(failures.length)} failed:`);
  for (const { file, reason } of failures) lines.push(`  ${file}: ${reason}`);
  return `${lines.join('\n')}\n`;
}

interface Streams {
  readonly stdin: NodeJS.ReadableStream;
  /** Receives the one image of `-`. */
  readonly stdout: NodeJS.WritableStream;
  /** Receives all messages. */
  readonly err: Output;
}

async function cutStandardInput(
  cut: (bytes: Uint8Array) => Promise<CutoutResult>,
  { stdin, stdout }: Streams,
) {
  const result = await cut(await buffer(stdin));
  await new Promise<void>((resolve, reject) => {
    stdout.write(result.bytes, (error) => (error ? reject(error) : resolve()));
  });
}

async function cutFiles(
  inputs: readonly Input[],
  { out, overwrite, jobs }: RunOptions & { jobs: number },
  cut: (bytes: Uint8Array) => Promise<CutoutResult>,
  err: Output,
  signal: AbortSignal,
): Promise<boolean> {
  const started = performance.now();
  const failures: Failure[] = [];
  const sources = new Set(inputs.map(({ file }) => path.resolve(file)));
  const written = new Map<string, string>();
  let done = 0;
  const progress = bar(err, inputs.length);
  try {
    await eachOf(inputs, jobs, async (input) => {
      if (signal.aborted) return;
      try {
        const result = await cut(await readFile(input.file));
        const file = path.resolve(resultFile(input, out, extensionOf(result)));
        if (sources.has(file))
          throw new UserError(`The result ${file} would overwrite an input; choose another --out.`);
        const earlier = written.get(file);
        if (earlier) throw new UserError(`The result ${file} is already that of ${earlier}.`);
        written.set(file, input.file);
        await writeResult(file, result.bytes, overwrite);
        done += 1;
      } catch (error) {
        if (signal.aborted) return;
        failures.push({ file: input.file, reason: reasonOf(error) });
      }
      progress.step();
    });
  } finally {
    progress.stop();
  }
  const skipped = inputs.length - done - failures.length;
  err.write(summary(done, failures, skipped, (performance.now() - started) / 1000));
  return failures.length === 0 && skipped === 0;
}

/**
 * `cutout run`: cuts out files without a server, accounts or rate limits. Resolves with false if anything
 * failed; the summary says what and why. Throws UserError for names that match no file.
 */
export async function run(
  names: readonly string[],
  options: RunOptions,
  config: Config,
  streams: Streams,
): Promise<boolean> {
  const { err } = streams;
  const standardInput = names.includes('-');
  if (standardInput && names.length > 1)
    throw new UserError('"-" reads one image and must be the only input.');
  if (standardInput && options.out !== undefined)
    throw new UserError('"-" writes to standard output and cannot be combined with --out.');
  const limits = { ...configureImages(config.cutout), maxBytes };
  const extensions = limits.formats.flatMap((format) =>
    format === 'jpeg' ? ['jpg', 'jpeg'] : format === 'tiff' ? ['tif', 'tiff'] : [format],
  );
  const inputs = standardInput ? [] : await findInputs(names, extensions);
  if (options.out !== undefined) makeFolder('output folder', options.out);

  const stopping = new AbortController();
  onStopSignal(() => stopping.abort(new UserError('Stopped.')));
  const { signal } = stopping;
  const observer = progressOn(err, config.engine.model);
  const { pull, jobs: wanted } = options;
  const { cutout, jobs, close } = await openCutout(config, {
    limits,
    jobs: wanted,
    pull,
    observer,
    signal,
  }).finally(() => observer.done());
  try {
    const cut = (bytes: Uint8Array) =>
      cutout(
        {
          ...plainRequest,
          source: { kind: 'bytes', bytes },
          size: options.size,
          format: options.format,
          typeLevel: 'none',
        },
        { accountId: 'local', requestId: 'run', signal, telemetry: new RequestTelemetry() },
      );
    if (!standardInput) return await cutFiles(inputs, { ...options, jobs }, cut, err, signal);
    try {
      await cutStandardInput(cut, streams);
      return true;
    } catch (error) {
      err.write(`${reasonOf(error)}\n`);
      return false;
    }
  } finally {
    await close();
  }
}
