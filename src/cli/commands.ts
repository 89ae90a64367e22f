import { Command, InvalidArgumentError, Option } from 'commander';
import type { Stores } from '../billing/stores.ts';
import { type Config, describeConfig, withModel } from '../config/readConfig.ts';
import { UserError } from '../errors.ts';
import { sizeLimits } from '../image/size.ts';
import { abortedByStop } from '../ops/stopSignals.ts';
import { billingOf, improveOf } from '../server/options.ts';
import { accountsCommands } from './accounts.ts';
import type { CheckOptions } from './check/check.ts';
import { improveCommand } from './improve.ts';
import { using } from './listing.ts';
import { showConfig } from './output.ts';
import { runFormats } from './run/results.ts';
import type { RunOptions } from './run/run.ts';
import { storeCommands } from './store.ts';

const { argv, stdin, stdout, stderr } = process;

/** The command that is asked for, `help NAME` included: the modules of the others are not loaded. */
const asked = argv[2] === 'help' ? argv[3] : argv[2];

async function models(config: Config): Promise<Command> {
  const [{ modelsCommand }, { knownDevice }, { installedCatalogue }, { secondModelOf }, { loadAddon }] =
    await Promise.all([
      import('./models.ts'),
      import('../server/deviceQuestion.ts'),
      import('../models/catalogue.ts'),
      import('../models/locate.ts'),
      import('../engine/addon.ts'),
    ]);
  return modelsCommand({
    config: { ...config, engine: await knownDevice(config.engine) },
    catalogueDir: installedCatalogue(),
    secondNetwork: () => secondModelOf(config.engine),
    target: () => loadAddon().versions(),
    out: stdout,
  });
}

function positive(text: string): number {
  if (!/^[1-9]\d{0,2}$/.test(text))
    throw new InvalidArgumentError('It must be a whole number from 1 to 999.');
  return Number(text);
}

/** Adds `name=value` to the fields that were given before. */
function addField(text: string, fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must be name=value.');
  return { ...fields, [name]: value };
}

/** The options that commands share with `serve`, as commander takes them: flags and description. */
type SharedOptions = Readonly<Record<'pull' | 'model', readonly [string, string]>>;

function runCommand(config: Config, { pull, model }: SharedOptions): Command {
  return new Command('run')
    .description('remove the background of files; continues an interrupted run')
    .argument('<inputs...>', 'files, folders, globs, or - for standard input to standard output')
    .option('-o, --out <folder>', 'folder of the results (default: beside the input, as <name>-cutout)')
    .addOption(
      new Option('-f, --format <format>', 'format of the results').choices(runFormats).default('auto'),
    )
    .option('--lossless', 'WebP without loss of colour, with --format webp', false)
    .addOption(
      new Option('-s, --size <size>', 'largest size of the results')
        .choices(Object.keys(sizeLimits))
        .default('50MP'),
    )
    .option(
      '-j, --jobs <number>',
      'concurrent images (default: depends on the machine; 4 with --server)',
      positive,
    )
    .option('--overwrite', 'replace existing results (default: skip their inputs)', false)
    .option(
      '--server <address>',
      'use a running server, with the key in CUTOUT_API_KEY; its prices and limits apply',
    )
    .option(
      '--mask <file>',
      'image that says where the subject of the one input is: white in, black out, gray undecided',
    )
    .option(
      '--point <points>',
      'points of the subject of the one input, as in "40% 55%; -80% 50%"; a minus leaves out what is there',
    )
    .option('--box <box>', 'box "x1 y1 x2 y2" around the subject of the one input')
    .option('--report <file>', 'CSV file with a line for each input')
    .option('--review <folder>', 'also writes results with an uncertainty of 0.5 and more there')
    .option(...model)
    .option(...pull, false)
    .action(async (inputs: string[], options: RunOptions & { model?: string }) => {
      if (options.server !== undefined && options.model !== undefined)
        throw new UserError('--model has no effect with --server.');
      const { run } = await import('./run/run.ts');
      if (!(await run(inputs, options, withModel(config, options.model), { stdin, stdout, err: stderr })))
        process.exitCode = 1;
    });
}

function checkCommand(config: Config): Command {
  return new Command('check')
    .description(
      'send the same requests to this service and to another one of the remove.bg API, and list what differs',
    )
    .argument('[photo]', 'JPEG, PNG or WebP (default: a drawn image)')
    .requiredOption(
      '--against <address>',
      'the other service, with its key in CUTOUT_AGAINST_KEY: the address before /v1.0, or the whole one of its removebg',
    )
    .option(
      '--server <address>',
      'a running Cutout, with the key in CUTOUT_API_KEY',
      `http://127.0.0.1:${config.http.port}`,
    )
    .option('--full', 'also ask for results that cost a whole credit', false)
    .option('--field <name=value>', 'field that is added to every request; may be repeated', addField, {})
    .option('--timeout <seconds>', 'longest time for one answer', positive, 120)
    .option('--dry-run', 'list the requests and send none', false)
    .option('--json', 'as JSON', false)
    .addHelpText(
      'after',
      '\nBoth services charge for results at their prices. Exit status: 0 no difference that a client can notice, 1 some,\n2 nothing could be compared.',
    )
    .action(async (photo: string | undefined, options: CheckOptions) => {
      const { signal } = abortedByStop();
      // Stays if the check cannot be made.
      process.exitCode = 2;
      const { check } = await import('./check/check.ts');
      const same = await check(photo, options, config, { out: stdout, err: stderr, signal });
      process.exitCode = same ? 0 : 1;
    });
}

function consoleCommand({ http }: Config, open: () => Promise<Stores>): Command {
  return new Command('console')
    .description('print a link to the console that works once and expires after an hour')
    .action(async () => {
      const [{ linkMinutes, SignIns }, { localAccountId }] = await Promise.all([
        import('../accounts/signIns.ts'),
        import('../commands/ensureLocalAccount.ts'),
      ]);
      await using(open(), async ({ accounts, database }) => {
        if (!(await accounts.find(localAccountId)))
          throw new UserError('There is no local account yet: `cutout serve` creates it at its first start.');
        const token = await new SignIns(database).createLink(localAccountId);
        const url = http.publicUrl ?? `http://127.0.0.1:${http.port}`;
        stdout.write(`${url}/console#${token}\nIt works once and expires after ${linkMinutes} minutes.\n`);
      });
    });
}

function configCommand(config: Config): Command {
  return new Command('config')
    .description('show every setting, its value and where it comes from')
    .option('--json', 'as JSON', false)
    .action(({ json }: { json: boolean }) => showConfig(describeConfig(config), json, stdout));
}

function doctorCommand(config: Config): Command {
  return new Command('doctor')
    .description('check library, networks, stores, clock, disk and limits')
    .option('--json', 'as JSON', false)
    .option(
      '--measure',
      'also load the network in every precision and measure it, and the devices with CUTOUT_DEVICE=auto; may take minutes',
      false,
    )
    .action(async (options: { json: boolean; measure: boolean }) => {
      const { doctor } = await import('./doctor/doctor.ts');
      if (!(await doctor(config, options, { out: stdout, err: stderr }))) process.exitCode = 1;
    });
}

/** A group of commands, whose modules are loaded only if it is asked for. */
async function group(name: string, description: string, load: () => Promise<Command>): Promise<Command> {
  const command = asked === name ? await load() : new Command(name);
  return command.description(description);
}

/** Adds every command but `serve`. */
export async function addCommands(program: Command, config: Config, shared: SharedOptions): Promise<void> {
  const open = async () => {
    const { openStores } = await import('../billing/stores.ts');
    return openStores({ ...config.store, billing: billingOf(config.billing, config.http.timeout) });
  };
  const openImages = async () => {
    const { openImprove } = await import('../improve/improve.ts');
    const stores = await open();
    return { improve: openImprove(improveOf(config.improve, stores.database)), stores, close: stores.close };
  };
  const commands = [
    runCommand(config, shared),
    checkCommand(config),
    await group('models', 'networks: list, pull, prepare, add, remove', () => models(config)),
    await group('runtime', 'libraries for a GPU: install', async () => {
      const { runtimeCommand } = await import('./runtime.ts');
      return runtimeCommand({ runtimesDir: config.engine.runtimesDir, out: stdout });
    }),
    ...accountsCommands({ open, out: stdout }),
    ...storeCommands(config.store, stdout),
    consoleCommand(config, open),
    improveCommand({ open: openImages, out: stdout }),
    configCommand(config),
    doctorCommand(config),
  ];
  for (const command of commands) program.addCommand(command);
}
