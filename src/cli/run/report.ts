import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { reviewFrom } from '../../billing/entries.ts';
import { csv } from '../../billing/present.ts';
import { AppError, toAppError, UserError } from '../../errors.ts';
import { checkWritable, codeOf, reasonToWrite, writeAtomically } from '../../files.ts';
import type { Output } from '../modelsProgress.ts';
import { newProgressBar, table } from '../output.ts';

/** What became of one input. */
export type Outcome =
  | {
      readonly state: 'done';
      readonly file: string;
      readonly result: string;
      readonly seconds: number;
      /** The chance that a person has to look at it; -1: not known. */
      readonly uncertainty: number;
    }
  | { readonly state: 'skipped'; readonly file: string; readonly result: string }
  | {
      readonly state: 'failed';
      readonly file: string;
      readonly reason: string;
      /** A result that was paid for but is not there. */
      readonly paid?: Paid;
    };

export interface Paid {
  readonly creditsCharged: number;
  readonly idempotencyKey: string;
}

interface Totals {
  readonly outcomes: readonly Outcome[];
  readonly inputs: number;
  readonly seconds: number;
  readonly creditsCharged: number;
  /** Why the run ended early. */
  readonly stopped: string | undefined;
}

const count = (n: number) => `${n} ${n === 1 ? 'image' : 'images'}`;
const credits = (n: number) => `${n} ${n === 1 ? 'credit' : 'credits'}`;
const rate = (done: number, seconds: number) => (done / Math.max(seconds, 0.001)).toFixed(1);

/** Runs of as many images print their progress where there is no terminal. */
const linesFrom = 50;

/** Progress over `total` images: a bar on a terminal, else a line per tenth of a large run. `step`: one more is over. */
export function runProgress(out: Output, total: number): { step(): void; stop(): void } {
  const started = performance.now();
  let steps = 0;
  const speed = () => rate(steps, (performance.now() - started) / 1000);
  if (!out.isTTY) {
    const step = () => {
      const tenth = Math.floor((10 * steps) / total);
      steps += 1;
      if (total >= linesFrom && Math.floor((10 * steps) / total) > tenth && steps < total)
        out.write(`${steps} of ${total} images, ${speed()} images a second\n`);
    };
    return { step, stop: () => {} };
  }
  const bar = newProgressBar(
    out,
    '{bar} {percentage}% | {value} of {total} images | {speed} images/s | {eta_formatted} left',
  );
  bar.start(total, 0, { speed: '0.0' });
  const step = () => {
    steps += 1;
    bar.increment({ speed: speed() });
  };
  return { step, stop: () => bar.stop() };
}

/** Why there is no result, and what was paid for it. */
export const fullReason = ({ reason, paid }: { readonly reason: string; readonly paid?: Paid }): string =>
  paid === undefined
    ? reason
    : `${reason} Charged: ${credits(paid.creditsCharged)}; Idempotency-Key: ${paid.idempotencyKey}`;

export const paidNote = `Where something was charged, the same command sends the same Idempotency-Key: it gets the result without another
charge while the server keeps it (Cutout: CUTOUT_KEEP_SECONDS, 10 minutes).
`;

/** Results that are named in the summary. */
const mostNamed = 10;

/** The results that somebody should look at, the least certain first. */
function reviewLines(outcomes: readonly Outcome[]): string[] {
  const unsure = outcomes
    .filter((outcome) => outcome.state === 'done')
    .filter(({ uncertainty }) => uncertainty >= reviewFrom)
    .sort((a, b) => b.uncertainty - a.uncertainty);
  if (unsure.length === 0) return [];
  const named = unsure
    .slice(0, mostNamed)
    .map(({ result, uncertainty }) => `  ${uncertainty.toFixed(2)}  ${result}`);
  const rest = unsure.length > mostNamed ? ['  …'] : [];
  return [`${count(unsure.length)} may need a look (uncertainty):`, ...named, ...rest];
}

/** What was done, in sentences, and a table of failures. */
export function summary({ outcomes, inputs, seconds, creditsCharged, stopped }: Totals): string {
  const of = (state: Outcome['state']) => outcomes.filter((outcome) => outcome.state === state);
  const done = of('done').length;
  const skipped = of('skipped').length;
  const failed = outcomes.filter((outcome) => outcome.state === 'failed');
  const speed = done > 1 ? ` (${rate(done, seconds)} images a second)` : '';
  const lines = [`${count(done)} cut out in ${seconds.toFixed(1)} s${speed}.`];
  if (creditsCharged > 0) lines.push(`Charged: ${credits(creditsCharged)}.`);
  if (skipped > 0)
    lines.push(`${count(skipped)} skipped, because the result already exists; --overwrite replaces it.`);
  const left = inputs - outcomes.length;
  lines.push(...reviewLines(outcomes));
  if (stopped !== undefined) lines.push(`Stopped: ${stopped}`);
  if (left > 0) lines.push(`${count(left)} not started or not finished; the same command continues there.`);
  if (failed.length > 0) lines.push(`${count(failed.length)} failed:`);
  const rows = failed.map((outcome) => [`  ${outcome.file}`, fullReason(outcome)]);
  const note = failed.some(({ paid }) => paid) ? paidNote : '';
  return `${lines.join('\n')}\n${table(rows)}${note}`;
}

const notWritable = (file: string, reason: string) =>
  new UserError(`The report ${file} cannot be written: ${reason}.`);

/** The error for a report that could not be written, in words about the report and not about a temporary file. */
function unwritten(file: string, error: unknown): UserError {
  if (codeOf(error) === 'ENOENT') return notWritable(file, `the folder ${path.dirname(file)} does not exist`);
  return notWritable(file, codeOf(error) === 'ENAMETOOLONG' ? 'its name is too long' : reasonToWrite(error));
}

/** Extensions of images and results. */
const imageName = /\.(?:avif|bmp|gif|hei[cf]|jpe?g|png|svg|tiff?|webp|zip)$/i;

/** Throws UserError for a report that cannot be written or is more likely an input, as in `--report *.jpg`. */
export async function checkReport(file: string, inputs: ReadonlySet<string>): Promise<void> {
  if (inputs.has(path.resolve(file))) throw notWritable(file, 'it is an input');
  if (imageName.test(file)) throw notWritable(file, 'it has the name of an image');
  const found = await lstat(file).catch((error: unknown) => {
    if (codeOf(error) === 'ENAMETOOLONG') throw unwritten(file, error);
  });
  if (found && !found.isFile()) throw notWritable(file, 'it is not a regular file');
  await checkWritable(path.dirname(file)).catch((error: unknown) => {
    throw unwritten(file, error);
  });
}

/** Writes a line of CSV for every input that was looked at. Rejects with UserError. */
export async function writeReport(file: string, outcomes: readonly Outcome[]): Promise<void> {
  const rows = outcomes.map((outcome) => [
    outcome.file,
    outcome.state,
    'result' in outcome ? outcome.result : '',
    'seconds' in outcome ? outcome.seconds.toFixed(2) : '',
    outcome.state === 'failed' ? fullReason(outcome) : '',
    outcome.state === 'done' && outcome.uncertainty >= 0 ? outcome.uncertainty.toFixed(3) : '',
  ]);
  const content = csv([['file', 'state', 'result', 'seconds', 'reason', 'uncertainty'], ...rows]);
  await writeAtomically(file, content, 'replace').catch((error: unknown) => {
    throw unwritten(file, error);
  });
}

export function reasonOf(error: unknown): string {
  if (error instanceof UserError) return error.message;
  if (error instanceof AppError && error.status < 500)
    return `${error.title.replace(/\.$/, '')}: ${error.detail}`;
  const messages: Readonly<Record<string, string>> = {
    EACCES: 'Permission denied.',
    ENOENT: 'The file no longer exists.',
    ELOOP: 'The link leads back to itself.',
    ENAMETOOLONG: 'The name of the result is too long.',
    EIO: 'The disk reports an error when it is read or written.',
    EEXIST: 'The result already exists; --overwrite replaces it.',
  };
  const message = messages[codeOf(error) ?? ''];
  if (message !== undefined) return message;
  const app = toAppError(error);
  const cause = app.cause instanceof Error ? ` (${app.cause.message})` : '';
  return `${app.title}: ${app.detail}${cause}`;
}
