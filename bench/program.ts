import { Command } from 'commander';
import { all } from './all.ts';
import { generateCommand } from './generate.ts';
import { addShared, type BenchModule } from './lib/command.ts';
import { type Destinations, deliver, measure, type Output, progressOn } from './lib/frame.ts';

function commandOf(bench: BenchModule, output: Output): Command {
  const { name, summary, options } = bench.command;
  const command = new Command(name).description(summary);
  addShared(command, bench.command);
  options?.(command);
  return command
    .option('--json <file>', 'write the figures as JSON; - prints them instead of the table')
    .option('--html <file>', 'write a page with plots')
    .action(async ({ json, html, ...settings }: Destinations) => {
      const context = progressOn(output.err, name);
      try {
        const report = await measure(bench, settings, context);
        context.done();
        await deliver(report, { ...(json && { json }), ...(html && { html }) }, output.out);
      } finally {
        context.done();
      }
    });
}

/** The command line: one command per bench, `all`, and `generate`. */
export function createProgram(benches: readonly BenchModule[], output: Output): Command {
  const program = new Command('npm run bench --')
    .description('Measures Cutout: this checkout on this machine, or a running server.')
    .showHelpAfterError();
  for (const bench of benches) program.addCommand(commandOf(bench, output));
  return program.addCommand(all(benches, output)).addCommand(generateCommand(output.out));
}
