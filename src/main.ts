import { Command, InvalidArgumentError, Option } from 'commander';
import { openBooks } from './billing/books.ts';
import { booksCommands } from './cli/books.ts';
import { showConfig } from './cli/config.ts';
import { improveCommand } from './cli/improve.ts';
import { modelsCommand } from './cli/models.ts';
import { billingOf, improveOf } from './cli/parts.ts';
import { type RunOptions, run, runFormats, runSizes } from './cli/run.ts';
import { serve } from './cli/serve.ts';
import { sqliteAddon } from './cli/sqlite.ts';
import { version } from './cli/version.ts';
import { loadConfig } from './config.ts';
import { EngineError } from './engine/types.ts';
import { UserError } from './errors.ts';
import { openImprove } from './improve/open.ts';
import { installedCatalogue } from './models/catalogue.ts';
import { ModelError } from './models/error.ts';
import { StoreError } from './store/error.ts';

const { stdin, stdout, stderr } = process;

function positive(text: string): number {
  if (!/^[1-9]\d{0,2}$/.test(text))
    throw new InvalidArgumentError('It must be a whole number from 1 to 999.');
  return Number(text);
}

/** Errors whose message is a sentence for the person at the keyboard; all others are bugs and show where. */
const isForPeople = (error: unknown): error is Error =>
  error instanceof UserError ||
  error instanceof ModelError ||
  error instanceof StoreError ||
  (error instanceof EngineError && error.code !== 'ENGINE_INTERNAL');

async function main(): Promise<void> {
  const config = loadConfig();
  const program = new Command('cutout')
    .description('Background removal on your own machine.')
    .version(version());
  const pull = ['--pull', 'fetch the network when it is not there'] as const;

  program
    .command('serve')
    .description('serve the HTTP API')
    .option(...pull)
    .action((options: { pull?: true }) => serve(config, { pull: options.pull ?? false, out: stderr }));

  program
    .command('run')
    .description('cut out files, without a server')
    .argument('<inputs...>', 'files, folders, globs, or - for standard input to standard output')
    .option('-o, --out <folder>', 'where results go (default: beside the input, as <name>-cutout)')
    .addOption(new Option('-f, --format <format>', 'of the results').choices(runFormats).default('auto'))
    .addOption(
      new Option('-s, --size <size>', 'largest size of the results').choices(runSizes).default('50MP'),
    )
    .option('-j, --jobs <number>', 'pictures at a time (default: from the machine)', positive)
    .option('--overwrite', 'replace results that are there', false)
    .option(...pull, false)
    .action(async (inputs: string[], options: RunOptions) => {
      if (!(await run(inputs, options, config, { stdin, stdout, err: stderr }))) process.exitCode = 1;
    });

  program.addCommand(
    modelsCommand({
      modelsDir: config.modelsDir,
      catalogueDir: installedCatalogue(),
      defaultNetwork: config.model,
      device: config.device,
      out: stdout,
    }),
  );

  const open = () =>
    openBooks({ dataDir: config.dataDir, nativeBinding: sqliteAddon, billing: billingOf(config) });
  for (const command of booksCommands({ open, out: stdout })) program.addCommand(command);

  const openImages = () => {
    const { database, close } = open();
    return { improve: openImprove(improveOf(config, database)), close };
  };
  program.addCommand(improveCommand({ open: openImages, out: stdout }));

  program
    .command('config')
    .description('show every setting, its value and where it comes from')
    .option('--json', 'as JSON', false)
    .action(({ json }: { json: boolean }) => showConfig(config, json, stdout));

  await program.parseAsync();
}

try {
  await main();
} catch (error) {
  if (!isForPeople(error)) throw error;
  stderr.write(`cutout: ${error.message}\n`);
  process.exitCode = 1;
}
