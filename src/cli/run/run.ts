import path from 'node:path';
import type { Readable } from 'node:stream';
import { reviewFrom } from '../../billing/entries.ts';
import type { Config } from '../../config/readConfig.ts';
import { UserError } from '../../errors.ts';
import { checkWritable, reasonToWrite } from '../../files.ts';
import { makeFolder } from '../../folder.ts';
import type { SubjectPrompt } from '../../geometry/subjectPrompt.ts';
import type { SizeName } from '../../image/size.ts';
import type { InputFormat } from '../../image/types.ts';
import { maxFileBytes } from '../../inputLimits.ts';
import { abortedByStop } from '../../ops/stopSignals.ts';
import { configureLocalImages } from '../../server/images.ts';
import type { Output } from '../modelsProgress.ts';
import { type CutoutFile, type Cutter, promptOf } from './cutter.ts';
import { readInput, readNamed, readStream } from './files.ts';
import { findInputs } from './inputs.ts';
import { openLocalCutter } from './localCutter.ts';
import { type PlanOptions, planTasks, type Task } from './plan.ts';
import {
  checkReport,
  fullReason,
  type Outcome,
  type Paid,
  paidNote,
  reasonOf,
  runProgress,
  summary,
  writeReport,
} from './report.ts';
import { extensionOf, type Input, RunError, writeResult } from './results.ts';
import { openServerCutter } from './serverCutter.ts';

export interface RunOptions extends PlanOptions {
  readonly lossless: boolean;
  readonly size: SizeName;
  readonly jobs?: number;
  readonly pull: boolean;
  /** Address of a server that does the work. */
  readonly server?: string;
  /** File that gets a line for every input. */
  readonly report?: string;
  /** Folder that gets copies of the results that somebody should look at. */
  readonly review?: string;
  /** Image that says where the subject of the one input is. */
  readonly mask?: string;
  /** Points and a box that say which subject of the one input is meant. */
  readonly point?: string;
  readonly box?: string;
}

/** The limit of uploads does not apply to local files; this one keeps an unsuitable file from being read completely. */
const maxBytes = 1024 ** 3;

/** Largest input: a server reads no larger upload. */
const inputBytes = (server: string | undefined) => (server === undefined ? maxBytes : maxFileBytes);

/** Extensions of formats that are not called like them. */
const otherExtensions: Readonly<Partial<Record<InputFormat, readonly string[]>>> = {
  jpeg: ['jpg', 'jpeg'],
  tiff: ['tif', 'tiff'],
  heic: ['heic', 'heif'],
};

/** Runs `work` on every item, at most `width` at a time. Rejects with the first rejection. */
async function eachOf<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
}

interface Streams {
  readonly stdin: Readable;
  /** Receives the one image of `-`. */
  readonly stdout: NodeJS.WritableStream;
  /** Receives all messages. */
  readonly err: Output;
}

/** What was paid for a result, if anything was. */
const paidFor = ({ creditsCharged, idempotencyKey }: CutoutFile): { paid?: Paid } =>
  creditsCharged > 0 && idempotencyKey !== undefined ? { paid: { creditsCharged, idempotencyKey } } : {};

async function cutStandardInput(
  cutter: Cutter,
  { format, server }: RunOptions,
  { stdin, stdout }: Streams,
  signal: AbortSignal,
) {
  const result = await cutter.cut(await readStream(stdin, inputBytes(server), signal), format, signal);
  extensionOf(result.contentType, result.bytes);
  const written = new Promise<void>((resolve, reject) => {
    stdout.once('error', reject);
    stdout.write(result.bytes, (error) => (error ? reject(error) : resolve()));
  });
  await written.catch((error: unknown) => {
    const reason = `The result cannot be written: ${reasonToWrite(error)}.`;
    const paid = paidFor(result);
    throw new UserError(paid.paid ? `${fullReason({ reason, ...paid })}\n${paidNote.trimEnd()}` : reason);
  });
}

/** Rejects with UserError if results cannot be written, before an image is paid for. */
async function checkOutput(folder: string): Promise<void> {
  await checkWritable(folder).catch((error: unknown) => {
    throw new UserError(`The output folder ${folder} cannot be written: ${reasonToWrite(error)}.`);
  });
}

/** The path of a file from a folder that it is in, else its name. */
function nameBelow(folder: string, file: string): string {
  const below = path.relative(folder, file);
  return below.startsWith('..') || path.isAbsolute(below) ? path.basename(file) : below;
}

/** Writes the result of an input, and a copy of one that needs a look, whatever its extension. Rejects with UserError where that would replace an input. */
async function keep(
  stem: string,
  { contentType, bytes, uncertainty }: CutoutFile,
  sources: ReadonlySet<string>,
  { out = '.', overwrite, review }: RunOptions,
): Promise<string> {
  const result = `${stem}${extensionOf(contentType, bytes)}`;
  if (sources.has(result))
    throw new UserError(`The result ${result} would overwrite an input; choose another --out.`);
  await writeResult(result, bytes, overwrite);
  if (review !== undefined && uncertainty >= reviewFrom)
    await writeResult(path.join(review, nameBelow(out, result)), bytes, true);
  return result;
}

async function cutFiles(
  inputs: readonly Input[],
  options: RunOptions,
  openCutter: () => Promise<Cutter>,
  err: Output,
  signal: AbortSignal,
): Promise<boolean> {
  const { out, report, server } = options;
  const sources = new Set(inputs.map(({ file }) => path.resolve(file)));
  if (report !== undefined) await checkReport(report, sources);
  const plan = await planTasks(inputs, sources, options);
  const outcomes = [...plan.outcomes];
  let creditsCharged = 0;
  let stopped: string | undefined;

  const cut = async (cutter: Cutter, { file, stem, format }: Task): Promise<Outcome> => {
    const started = performance.now();
    const cutout = await cutter.cut(await readInput(file, inputBytes(server)), format, signal);
    creditsCharged += cutout.creditsCharged;
    try {
      const result = await keep(stem, cutout, sources, options);
      const seconds = (performance.now() - started) / 1000;
      return { state: 'done', file, result, seconds, uncertainty: cutout.uncertainty };
    } catch (error) {
      // A result that was made and could not be kept is a failure of its own, even if it also ends the run.
      if (error instanceof RunError) stopped ??= error.message;
      return { state: 'failed', file, reason: reasonOf(error), ...paidFor(cutout) };
    }
  };

  const [first] = plan.tasks;
  if (first) await checkOutput(out ?? path.dirname(first.stem));
  const cutter = first && (await openCutter());
  const started = performance.now();
  const progress = runProgress(err, plan.tasks.length);
  try {
    if (cutter)
      await eachOf(plan.tasks, cutter.jobs, async (task) => {
        if (signal.aborted || stopped !== undefined) return;
        try {
          outcomes.push(await cut(cutter, task));
        } catch (error) {
          if (signal.aborted) return;
          if (error instanceof RunError) stopped ??= error.message;
          else outcomes.push({ state: 'failed', file: task.file, reason: reasonOf(error) });
        }
        progress.step();
      });
  } finally {
    progress.stop();
    await cutter?.close();
  }
  const seconds = (performance.now() - started) / 1000;
  err.write(summary({ outcomes, inputs: inputs.length, seconds, creditsCharged, stopped }));
  if (report !== undefined) await writeReport(report, outcomes);
  return outcomes.length === inputs.length && outcomes.every(({ state }) => state !== 'failed');
}

function checkOptions(
  names: readonly string[],
  prompt: SubjectPrompt | undefined,
  options: RunOptions,
): void {
  const { server, pull, format, lossless, mask } = options;
  if (lossless && format !== 'webp') throw new UserError('--lossless needs --format webp.');
  if (mask !== undefined && prompt) throw new UserError('--mask cannot be combined with --point or --box.');
  if (server !== undefined && pull) throw new UserError('--pull has no effect with --server.');
  if (!names.includes('-')) return;
  if (names.length > 1) throw new UserError('"-" reads one image and must be the only input.');
  for (const name of ['out', 'report', 'review'] as const)
    if (options[name] !== undefined)
      throw new UserError(`"-" writes one image to standard output and cannot be combined with --${name}.`);
}

/**
 * `cutout run`: cuts out files without a server, accounts or rate limits, or by a running server. Results that
 * exist are kept, so the same command continues an interrupted run. Resolves with false if anything failed; the
 * summary says what and why. Throws UserError for names that match no file.
 */
export async function run(
  names: readonly string[],
  options: RunOptions,
  config: Config,
  streams: Streams,
): Promise<boolean> {
  const prompt = promptOf(options.point, options.box);
  checkOptions(names, prompt, options);
  const { err } = streams;
  const { server, out } = options;
  const limits = { ...configureLocalImages(), maxBytes };
  const extensions = limits.formats.flatMap((format) => otherExtensions[format] ?? [format]);
  const standardInput = names.includes('-');
  const inputs = standardInput ? [] : await findInputs(names, extensions, options);
  for (const name of ['mask', 'point', 'box'] as const) {
    if (options[name] !== undefined && inputs.length > 1)
      throw new UserError(`--${name} belongs to one image; give one input.`);
  }
  if (out !== undefined) makeFolder('output folder', out);
  if (options.review !== undefined) makeFolder('folder for review', options.review);

  const { signal } = abortedByStop();
  const mask = options.mask === undefined ? undefined : await readNamed('mask', options.mask);
  const wanted = { ...options, mask, points: options.point, prompt };
  const openCutter = async (): Promise<Cutter> =>
    server === undefined
      ? openLocalCutter(config, { ...wanted, limits, err, signal })
      : openServerCutter({ ...wanted, server, apiKey: config.accounts.apiKey, signal });
  if (!standardInput) return cutFiles(inputs, options, openCutter, err, signal);
  const cutter = await openCutter();
  try {
    await cutStandardInput(cutter, options, streams, signal);
    return true;
  } catch (error) {
    err.write(`${reasonOf(error)}\n`);
    return false;
  } finally {
    await cutter.close();
  }
}
