import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import { addShared, type BenchModule } from './lib/command.ts';
import { measure, type Output, progressOn } from './lib/frame.ts';
import type { Report } from './lib/outcome.ts';
import { reportText } from './lib/print.ts';
import { page } from './lib/report/page.ts';

interface AllOptions {
  readonly out: string;
  readonly quick: boolean;
  readonly only?: readonly string[];
  readonly images?: readonly string[];
}

/** Default values of the shared options. */
const usual = (bench: BenchModule): object => {
  const command = addShared(new Command(bench.command.name), bench.command);
  bench.command.options?.(command);
  return command.opts();
};

function chosenOf(
  benches: readonly BenchModule[],
  only: readonly string[] | undefined,
): readonly BenchModule[] {
  const unknown = only?.filter((name) => !benches.some(({ command }) => command.name === name)) ?? [];
  if (unknown.length > 0) throw new Error(`there is no bench named ${unknown.join(', ')}`);
  return benches.filter(({ command }) => (only ? only.includes(command.name) : command.all));
}

/**
 * In sequence, into one folder: report.html and results.json are rewritten after each, so that completed
 * measurements are kept if a later one is stopped. A failed one is named, and the rest continues.
 */
async function runAll(
  benches: readonly BenchModule[],
  { out: folder, quick, only, images }: AllOptions,
  { out, err }: Output,
): Promise<void> {
  const chosen = chosenOf(benches, only);
  await mkdir(folder, { recursive: true });
  const reports: Report[] = [];
  const failed: string[] = [];
  for (const [at, bench] of chosen.entries()) {
    const { name, all: instead, shared } = bench.command;
    const reason = bench.command.unavailable?.();
    if (reason !== undefined) {
      err.write(`${name} is left out: ${reason}\n`);
      continue;
    }
    const context = progressOn(err, `${at + 1}/${chosen.length} ${name}`);
    const settings = {
      ...usual(bench),
      ...(quick ? instead?.quick : instead?.full),
      ...(images && shared?.images && { images }),
    };
    try {
      const report = await measure(bench, settings, context);
      context.done();
      reports.push(report);
      out.write(reportText(report));
      await writeFile(path.join(folder, 'results.json'), `${JSON.stringify(reports, null, 1)}\n`);
      await writeFile(path.join(folder, 'report.html'), page(reports));
    } catch (error) {
      context.done();
      failed.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (reports.length > 0) out.write(`\n${path.join(folder, 'report.html')}\n`);
  if (failed.length > 0) throw new Error(`these did not run to their end\n  ${failed.join('\n  ')}`);
}

export const all = (benches: readonly BenchModule[], output: Output): Command =>
  new Command('all')
    .description('run everything into one folder: report.html and results.json')
    .option('--out <folder>', 'where to', 'bench-report')
    .option('--quick', 'a first impression in a few minutes', false)
    .option('--only <names...>', 'these benches only')
    .option('--images <paths...>', 'photographs to measure with: files or folders (default: drawn images)')
    .action((options: AllOptions) => runAll(benches, options, output));
