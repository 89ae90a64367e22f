import path from 'node:path';
import { z } from 'zod';
import { preparerOf } from '../compiler/form.ts';
import { writeAtomically } from '../files.ts';
import { ModelError } from './error.ts';
import { readKept } from './json.ts';
import { networkFiles, UNFINISHED } from './layout.ts';
import type { Manifest } from './manifest.ts';
import { processorKey } from './optimised.ts';
import { type Choices, formFor, operatorsText, type PrecisionChoice } from './precision.ts';

/** Every form runs as often, the last times alternating with the others; its fastest run counts. */
const ROUNDS = 3;

/** Milliseconds of processor time of a run below which no other form is looked for. */
const QUICK_MS = 50;

/** A form that takes so many times as long as the fastest one is not run again. */
const TOO_SLOW = 1.3;

/**
 * Largest mean difference from floats on the drawn image: a tenth of what is allowed on photos, which are harder (u2netp in bf16:
 * 0.0019 and 0.018).
 */
const LARGEST_DIFFERENCE = 0.0002;

/** A form for a person: "int8 by Cutout's operators for avx2". */
export const textOf = (choice: PrecisionChoice) =>
  [choice.precision, operatorsText(choice)].filter(Boolean).join(' by ');

const msText = (ms: number) => `${ms.toFixed(0)} ms`;

function meanDifference(a: Float32Array, b: Float32Array): number {
  const sum = a.reduce((total, value, at) => total + Math.abs(value - (b[at] ?? Number.NaN)), 0);
  return sum / a.length;
}

/**
 * Returns the fastest of `choices` (`precisionChoices`), with the times as its reason. One that fails, or comes after floats and
 * does not agree with them, is left out with a notice; where the first one fails at once for another reason than memory, nothing
 * is returned.
 * @param run opens, runs and closes a form; `ms` is processor time, which other processes change less than the time that passes
 */
export async function fastest(
  choices: Choices,
  run: (choice: PrecisionChoice) => Promise<{ readonly ms: number; readonly output: Float32Array }>,
  { notice, signal }: { readonly notice: (text: string) => void; readonly signal: AbortSignal },
): Promise<PrecisionChoice | undefined> {
  const [usual] = choices;
  const precisions = choices.map(({ precision }) => precision);
  const best = new Map<PrecisionChoice, number>();
  let floats: Float32Array | undefined;
  let left: readonly PrecisionChoice[] = choices;
  for (let round = 0; round < ROUNDS && (round === 0 || left.length > 1); round++) {
    for (const choice of left) {
      try {
        const { ms, output } = await run(choice);
        if (choice.precision === 'fp32') floats = output;
        const after = choices.indexOf(choice) > precisions.indexOf('fp32');
        const difference = after ? meanDifference(output, floats ?? output) : 0;
        // Infinity and NaN do not agree either.
        if (!(difference <= LARGEST_DIFFERENCE))
          throw new Error(`it differs from floats by ${difference.toFixed(4)} on average.`);
        best.set(choice, Math.min(ms, best.get(choice) ?? ms));
        if (choice === usual && round === 0 && ms < QUICK_MS)
          return { ...usual, because: `measured: ${msText(ms)} of processor time` };
        // Nothing says whether the others agree with floats, so that the first of them is taken.
        if (after && !floats && precisions.includes('fp32')) break;
      } catch (error) {
        signal.throwIfAborted();
        const large = error instanceof ModelError && error.code === 'MODEL_MEMORY';
        if (choice === usual && round === 0 && !large) return undefined;
        best.delete(choice);
        const reason = error instanceof Error ? error.message : String(error);
        // Not every network has every form.
        if (!(error instanceof ModelError && error.code === 'MODEL_UNSUPPORTED'))
          notice(`The network is not computed in ${textOf(choice)}: ${reason}`);
      }
    }
    const least = Math.min(...best.values());
    left = left.filter((choice) => (best.get(choice) ?? Number.NaN) <= TOO_SLOW * least);
  }
  const [first, ...others] = [...best].sort(([, a], [, b]) => a - b);
  if (!first) return undefined;
  const slower = others.map(([choice, ms]) => `${textOf(choice)} ${msText(ms)}`);
  const times = [`${msText(first[1])} of processor time`, ...slower].join('; ');
  return { ...first[0], because: `measured: ${times}` };
}

/** A choice holds for these forms, and for this processor. */
export interface ChoiceKey {
  readonly choices: readonly PrecisionChoice[];
  /** A run has so many. */
  readonly threads: number;
  /** Version of Cutout. */
  readonly version: string;
  /** Bytes of memory that the process may take. */
  readonly memory: number;
  /** Where the system describes the processor; tests change it. */
  readonly cpuinfo?: string;
}

const keptSchema = z.strictObject({
  key: z.string(),
  /** The chosen one is at this place of the choices. */
  at: z.number().int().nonnegative(),
  because: z.string(),
  memory: z.number(),
  /** Whether another form did not fit into that memory. */
  leftOut: z.boolean(),
});

/** The choice for a network on this machine, kept beside its files. */
export class KeptChoice {
  readonly file: string;
  readonly #choices: readonly PrecisionChoice[];
  readonly #key: Promise<string>;
  readonly #memory: number;

  constructor(
    modelsDir: string,
    manifest: Manifest,
    { choices, threads, version, memory, cpuinfo }: ChoiceKey,
  ) {
    this.file = path.join(networkFiles(modelsDir, manifest).folder, 'choice.json');
    this.#choices = choices;
    this.#memory = memory;
    const forms = choices.map((choice) => [formFor(choice), preparerOf(formFor(choice)), choice.operators]);
    this.#key = processorKey(cpuinfo).then((processor = '') =>
      JSON.stringify([version, processor, threads, manifest.file.sha256, forms]),
    );
  }

  /**
   * Returns the choice; undefined without one for this key that can be read, with less memory than it was made with, and where a
   * form did not fit also with more.
   */
  async read(): Promise<PrecisionChoice | undefined> {
    const kept = await readKept(keptSchema, this.file);
    if (kept?.key !== (await this.#key)) return undefined;
    if (kept.leftOut ? kept.memory !== this.#memory : kept.memory > this.#memory) return undefined;
    const choice = this.#choices[kept.at];
    return choice && { ...choice, because: kept.because };
  }

  /** Writes the choice; nothing is written where the folder cannot be. `leftOut`: another form did not fit into the memory. */
  async keep(chosen: PrecisionChoice, leftOut = false): Promise<void> {
    const same = (each: PrecisionChoice) =>
      formFor(each) === formFor(chosen) && each.operators === chosen.operators;
    const at = this.#choices.findIndex(same);
    const kept = { key: await this.#key, at, because: chosen.because, memory: this.#memory, leftOut };
    const content = `${JSON.stringify(kept)}\n`;
    await writeAtomically(this.file, content, 'replace', { prefix: UNFINISHED }).catch(() => {});
  }
}
