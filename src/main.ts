import { Command } from 'commander';
import { isForPeople, printSafely, showConfig } from './cli/output.ts';
import { type Config, InvalidSettings, loadConfig, withModel } from './config/readConfig.ts';
import { accessSentence } from './folder.ts';
import { release, version } from './server/installation.ts';

const { argv, stderr, stdout } = process;
for (const stream of [stdout, stderr]) printSafely(stream);

/** `cutout config` lists all settings before it fails for those that are wrong. */
function readConfig(): Config {
  try {
    return loadConfig();
  } catch (error) {
    if (argv[2] === 'config' && error instanceof InvalidSettings)
      showConfig(error.lines, argv.includes('--json'), stdout);
    throw error;
  }
}

async function main(): Promise<void> {
  const config = readConfig();
  // The commit is looked up where it is asked for: in a checkout, git tells it.
  const asked = ['-V', '--version'].includes(argv[2] ?? '');
  const program = new Command('cutout')
    .description('Self-hosted background removal.')
    .version(asked ? release() : version(), '-V, --version', 'output version and commit');
  const pull = ['--pull', 'download the network if it is missing'] as const;
  const model = ['--model <name>', 'network to run (default: CUTOUT_MODEL)'] as const;

  program
    .command('serve')
    .description('serve the HTTP API; downloads the network at the first start')
    .option(...model)
    .option('--pull', 'download the network if it is missing (default)')
    .option('--no-pull', 'fail if the network is missing')
    .action(async ({ pull = true, model }: { pull?: boolean; model?: string }) => {
      const { serve } = await import('./cli/serve.ts');
      await serve(withModel(config, model), { pull, out: stderr });
    });

  // Other commands import much that a server does not need and that would delay its start.
  if (argv[2] !== 'serve') {
    const { addCommands } = await import('./cli/commands.ts');
    await addCommands(program, config, { pull, model });
  }
  await program.parseAsync();
}

try {
  await main();
} catch (error) {
  const refused = accessSentence(error) ?? accessSentence(error instanceof Error ? error.cause : undefined);
  if (!isForPeople(error) && refused === undefined) throw error;
  stderr.write(`cutout: ${isForPeople(error) ? error.message : refused}\n`);
  // EX_CONFIG: starting again changes nothing (systemd's RestartPreventExitStatus).
  process.exitCode ??= refused === undefined ? 1 : 78;
}
