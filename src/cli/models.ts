import { Command, InvalidArgumentError, Option } from 'commander';
import { FORMS, type Form } from '../compiler/form.ts';
import type { Config } from '../config/readConfig.ts';
import type { Provider } from '../engine/types.ts';
import { UserError } from '../errors.ts';
import { type CatalogueEntry, catalogueWith, findNetwork, listCatalogue } from '../models/catalogue.ts';
import { ModelError } from '../models/error.ts';
import { NORMALISATIONS } from '../models/guess.ts';
import { networkFiles } from '../models/layout.ts';
import type { Observer } from '../models/observer.ts';
import {
  choosePrecision,
  chooseSelectorPrecision,
  formFor,
  type PrecisionQuestion,
} from '../models/precision.ts';
import {
  type PullDependencies,
  type PullOptions,
  prepareAgain,
  pullDependencies,
  pullNetwork,
  removeNetwork,
} from '../models/pull.ts';
import type { PreparedRecord } from '../models/record.ts';
import { verifyPrepared, verifySource } from '../models/verify.ts';
import { onStopSignal } from '../ops/stop.ts';
import { megabytes } from './figures.ts';
import { type AddOptions, addNetwork, askOnTerminal, parseSize } from './modelsAdd.ts';
import { compareNetworks } from './modelsCompare.ts';
import { listNetworks, listTable, preparedIn } from './modelsList.ts';
import { type Open, openOnDevice } from './modelsOnDevice.ts';
import { type Output, progressOn } from './modelsProgress.ts';
import { table } from './table.ts';

interface ModelsCommandDependencies {
  readonly config: Config;
  readonly catalogueDir: string;
  /** The network beside that of CUTOUT_MODEL; undefined: none. */
  readonly secondNetwork: () => Promise<string | undefined>;
  /** What decides the form of a network. A function, because it loads the addon and only some commands need it. */
  readonly target: () => PrecisionQuestion;
  /** Opens the engine that `prepare` runs on a GPU. */
  readonly open?: Open;
  readonly stdin: NodeJS.ReadStream;
  readonly out: NodeJS.WriteStream;
  /** Progress of `compare`. */
  readonly err: Output;
  readonly pull?: PullDependencies;
}

function sizeArgument(text: string) {
  const size = parseSize(text);
  if (size === undefined)
    throw new InvalidArgumentError('It must be WIDTHxHEIGHT in pixels, e.g. 1024x1024.');
  return size;
}

function channelsArgument(text: string): [number, number, number] {
  const [red, green, blue, more] = text.split(',').map(Number);
  const valid = (value: number | undefined): value is number => Number.isFinite(value);
  if (!valid(red) || !valid(green) || !valid(blue) || more !== undefined)
    throw new InvalidArgumentError('It must be three numbers, e.g. 123.675,116.28,103.53.');
  return [red, green, blue];
}

/** Aborted by the first stop signal. */
function stopSignal(): AbortSignal {
  const stopping = new AbortController();
  onStopSignal(() => stopping.abort(new UserError('Stopped.')));
  return stopping.signal;
}

/** `cutout models …`. Actions reject with ModelError, whose message is one sentence for the operator. */
export function modelsCommand(dependencies: ModelsCommandDependencies): Command {
  const { config, catalogueDir, secondNetwork, target, stdin, out, err } = dependencies;
  const { modelsDir, device, model: defaultNetwork } = config.engine;
  const catalogue = catalogueWith(modelsDir, catalogueDir);
  const command = new Command('models');
  const entryOf = (name: string) => findNetwork(catalogue, name);
  const defaultForm = ({ manifest }: CatalogueEntry, forDevice: Provider = device) => {
    const selects = manifest.role === 'encoder' || manifest.role === 'decoder';
    const choose = selects ? chooseSelectorPrecision : choosePrecision;
    return formFor(choose(manifest, { ...target(), device: forDevice }));
  };
  const precisionOption = () =>
    new Option('--precision <form>', 'form to prepare (default: the one that this machine will use)').choices(
      FORMS,
    );

  const run = async <T>(
    name: string,
    { from, precision: wanted, device: forDevice }: { from?: string; precision?: Form; device?: Provider },
    work: (entry: CatalogueEntry, options: PullOptions) => Promise<T>,
    stopped = 'Stopped.',
  ): Promise<T> => {
    const entry = await entryOf(name);
    const shown = progressOn(out, name);
    const form = wanted ?? defaultForm(entry, forDevice);
    const stopping = new AbortController();
    const stopListening = onStopSignal(() => stopping.abort(new UserError(stopped)));
    const observer: Observer = {
      notice: shown.notice,
      progress(step) {
        // Preparation computes without a pause in which it could be aborted: the signal then ends the process.
        if (step.phase === 'prepare') stopListening();
        shown.progress(step);
      },
    };
    try {
      return await work(entry, {
        modelsDir,
        form,
        observer,
        from,
        dependencies: dependencies.pull ?? pullDependencies(),
        signal: stopping.signal,
      });
    } finally {
      stopListening();
      shown.done();
    }
  };
  const pull = (name: string, options: { from?: string; precision?: Form }) =>
    run(
      name,
      options,
      pullNetwork,
      `Stopped: ${name} is not complete. Run \`cutout models pull ${name}\` to continue.`,
    );
  const printReady = (name: string, record: PreparedRecord) => {
    const batch = record.freeBatch ? 'any batch size' : 'one image at a time';
    out.write(`${name} is ready: ${megabytes(record.bytes)}, ${record.precision}, ${batch}.\n`);
  };

  command
    .command('list')
    .description('list all networks: licence, size, time of a run here, quality, and what is installed')
    .option('--json', 'as JSON', false)
    .action(async ({ json }: { json: boolean }) => {
      // This list is where the name of a network that does not exist is corrected.
      const second = await secondNetwork().catch(() => undefined);
      const networks = await listNetworks({ catalogue, modelsDir, device, defaultNetwork, second });
      out.write(json ? `${JSON.stringify(networks, undefined, 2)}\n` : listTable(networks));
    });

  command
    .command('pull')
    .description('download, verify and prepare a network; continues an interrupted download')
    .argument(
      '[name]',
      `network (default: ${defaultNetwork}, the second network and the detector of subject types)`,
    )
    .option('--from <place>', 'https URL or path of the file; its checksum must match')
    .addOption(precisionOption())
    .action(async (name: string | undefined, options: { from?: string; precision?: Form }) => {
      const wanted = name ?? defaultNetwork;
      printReady(wanted, await pull(wanted, options));
      if (options.from !== undefined) return;
      const { decoder } = (await entryOf(wanted)).manifest;
      if (decoder !== undefined) printReady(decoder, await pull(decoder, {}));
      if (name !== undefined) return;
      const second = await secondNetwork();
      if (second !== undefined) printReady(second, await pull(second, {}));
      for (const { manifest } of await listCatalogue(catalogue)) {
        if (manifest.role === 'detector') printReady(manifest.name, await pull(manifest.name, {}));
      }
    });

  command
    .command('prepare')
    .description('prepare a downloaded network again')
    .argument('[name]', 'network', defaultNetwork)
    .addOption(precisionOption())
    .addOption(
      new Option(
        '--device <device>',
        'device to prepare it for (default: CUTOUT_DEVICE); for a GPU it is opened and run there, and for tensorrt its engines are built, which takes minutes',
      )
        .choices(['cpu', 'cuda', 'tensorrt'] satisfies Provider[])
        .conflicts('precision'),
    )
    .action(async (name: string, options: { precision?: Form; device?: Provider }) => {
      const { role } = (await entryOf(name)).manifest;
      const record = await run(name, options, prepareAgain);
      const prepared = options.device ?? device;
      // Other networks run on the CPU.
      if (prepared !== 'cpu' && role === 'matte')
        await openOnDevice(name, prepared, config, { out, signal: stopSignal(), open: dependencies.open });
      printReady(name, record);
    });

  command
    .command('verify')
    .description('verify the checksums of a network')
    .argument('[name]', 'network', defaultNetwork)
    .action(async (name: string) => {
      const entry = await entryOf(name);
      const needed = defaultForm(entry);
      const files = networkFiles(modelsDir, entry.manifest);
      const states = [[files.source, await verifySource(files, entry.manifest)]];
      // The format this machine uses must exist; others are verified if they do.
      const prepared = await preparedIn(modelsDir, entry);
      for (const form of new Set([needed, ...prepared])) {
        const formFiles = networkFiles(modelsDir, entry.manifest, form);
        states.push([formFiles.prepared, await verifyPrepared(formFiles, entry, form)]);
      }
      out.write(table(states));
      if (states.every(([, state]) => state === 'ok')) return;
      const code = states.some(([, state]) => state === 'damaged') ? 'model_damaged' : 'model_missing';
      throw new ModelError(code, `${name} is not ready for use. Run \`cutout models pull ${name}\`.`);
    });

  command
    .command('compare')
    .description('run all installed networks on photos, and write one page with their results')
    .argument('<photos...>', 'images')
    .option('-o, --out <file>', 'the page', 'cutout-compare.html')
    .option('--force', 'replace an existing page', false)
    .option('--networks <list>', 'only these, separated by commas', (text: string) => text.split(','))
    .action(
      async (photos: string[], options: { out: string; force: boolean; networks?: readonly string[] }) => {
        const streams = { out, err, signal: stopSignal() };
        if (!(await compareNetworks(photos, options, config, streams))) process.exitCode = 1;
      },
    );

  command
    .command('add')
    .description(
      'add a network of your own: reads its file, guesses the rest, asks where unsure, checks it on an image',
    )
    .argument('<file>', 'ONNX file: one image [1, 3, height, width] in, one matte out')
    .option('--name <name>', "name for CUTOUT_MODEL (default: the file's)")
    .option('--title <title>', "title for lists (default: the file's name)")
    .option('--size <WxH>', 'input size; the image is stretched to it', sizeArgument)
    .addOption(
      new Option('--normalise <values>', 'what the network expects of a channel').choices(
        Object.keys(NORMALISATIONS),
      ),
    )
    .option('--mean <r,g,b>', 'or its mean, of values in 0..255 …', channelsArgument)
    .option('--std <r,g,b>', '… and its standard deviation', channelsArgument)
    .addOption(new Option('--output <kind>', 'what output 0 is').choices(['probability', 'logit']))
    .addOption(
      new Option(
        '--trained-on <kind>',
        'what it was trained on: masks make hair too solid, which is corrected',
      )
        .choices(['masks', 'mattes'])
        .default('masks'),
    )
    .option('--licence <name>', 'licence of its weights')
    .option('--photo <file>', 'image to check it on (default: a built-in one)')
    .option('-y, --yes', 'accept uncertain guesses', false)
    .action(async (file: string, options: AddOptions) => {
      const signal = stopSignal();
      const ask = askOnTerminal(stdin, out, signal);
      await addNetwork(file, options, config, { out, signal, ...(ask && { ask }) });
    });

  command
    .command('remove')
    .description('delete the files of a network; one that was added is forgotten')
    .argument('<name>', 'network')
    .action(async (name: string) => {
      const removed = await run(name, { precision: 'fp32' }, removeNetwork);
      out.write(removed ? `${name} was removed from ${modelsDir}.\n` : `${name} was not in ${modelsDir}.\n`);
    });

  return command;
}
