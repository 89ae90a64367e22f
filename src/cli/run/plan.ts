import { lstat } from 'node:fs/promises';
import { codeOf } from '../../files.ts';
import { checkInput } from './files.ts';
import type { Outcome } from './report.ts';
import { reasonOf } from './report.ts';
import { existingResult, type Input, type RunFormat, resultStem, stemOf, usualResult } from './results.ts';

/** An input that is still to be cut out. */
export interface Task {
  readonly file: string;
  /** Path of its result without the extension. */
  readonly stem: string;
  readonly format: RunFormat;
}

export interface PlanOptions {
  readonly out?: string;
  readonly format: RunFormat;
  /** Whether inputs whose result exists are cut out again. */
  readonly overwrite: boolean;
}

interface Plan {
  readonly tasks: readonly Task[];
  /** Inputs that are not cut out. */
  readonly outcomes: readonly Outcome[];
}

/** Why an input cannot be read, as far as that shows without opening it. */
const inputFault = (file: string): Promise<string | undefined> =>
  checkInput(file).then(() => undefined, reasonOf);

/** Why a result cannot be written, known before the image is paid for. `taken`: inputs by their result's stem. */
async function refusalOf(
  stem: string,
  format: RunFormat,
  sources: ReadonlySet<string>,
  taken: ReadonlyMap<string, string>,
): Promise<string | undefined> {
  const earlier = taken.get(stem);
  const result = usualResult(stem, format);
  if (earlier !== undefined)
    // Which extension `auto` gives is not known before.
    return `The result ${format === 'auto' ? stem : result} is already that of ${earlier}; choose another --out for one of them.`;
  if (sources.has(result)) return `The result ${result} would overwrite an input; choose another --out.`;
  const error: unknown = await lstat(result).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return codeOf(error) === 'ENAMETOOLONG' ? reasonOf(error) : undefined;
}

/**
 * The format that is asked for: where a result is named like an input, `auto` is PNG, because a JPG could overwrite
 * that input, and the next run would take it for one.
 */
const formatAt = (stem: string, format: RunFormat, inputStems: ReadonlySet<string>): RunFormat =>
  format === 'auto' && inputStems.has(stem) ? 'png' : format;

/** Decides which inputs are cut out: not those whose result exists, and one for each result. */
export async function planTasks(
  inputs: readonly Input[],
  sources: ReadonlySet<string>,
  { out, format, overwrite }: PlanOptions,
): Promise<Plan> {
  const tasks: Task[] = [];
  const outcomes: Outcome[] = [];
  const taken = new Map<string, string>();
  const stems = new Set(inputs.map(stemOf));
  for (const input of inputs) {
    const { file } = input;
    const stem = resultStem(input, out);
    const reason = (await inputFault(file)) ?? (await refusalOf(stem, format, sources, taken));
    if (reason !== undefined) {
      outcomes.push({ state: 'failed', file, reason });
      continue;
    }
    taken.set(stem, file);
    const result = overwrite ? undefined : await existingResult(stem, format, sources);
    if (result === undefined) tasks.push({ file, stem, format: formatAt(stem, format, stems) });
    else outcomes.push({ state: 'skipped', file, result });
  }
  return { tasks, outcomes };
}
