import { Command } from 'commander';
import { serve } from './cli/serve.ts';
import { loadConfig } from './config/config.ts';
import { EngineError } from './engine/types.ts';
import { UserError } from './errors.ts';
import { ModelError } from './models/error.ts';
import { version } from './server/installation.ts';
import { StoreError } from './store/error.ts';

const { stderr } = process;

/** Errors whose message is a sentence for the user; all others are bugs and are printed with their stack. */
const isForPeople = (error: unknown): error is Error =>
  error instanceof UserError ||
  error instanceof ModelError ||
  error instanceof StoreError ||
  (error instanceof EngineError && error.code !== 'ENGINE_INTERNAL');

async function main(): Promise<void> {
  const config = loadConfig();
  const program = new Command('cutout').description('Self-hosted background removal.').version(version());
  const pull = ['--pull', 'download the network if it is missing'] as const;

  program
    .command('serve')
    .description('serve the HTTP API')
    .option(...pull)
    .action((options: { pull?: true }) => serve(config, { pull: options.pull ?? false, out: stderr }));

  // Other commands import much that a server does not need and that would delay its start.
  if (process.argv[2] !== 'serve') {
    const { addCommands } = await import('./cli/commands.ts');
    addCommands(program, config, { pull });
  }
  await program.parseAsync();
}

try {
  await main();
} catch (error) {
  if (!isForPeople(error)) throw error;
  stderr.write(`cutout: ${error.message}\n`);
  process.exitCode = 1;
}
