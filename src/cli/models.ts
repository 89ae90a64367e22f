import { rm } from 'node:fs/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import { FORMS, type Form } from '../compiler/form.ts';
import type { Config } from '../config/readConfig.ts';
import type { Provider } from '../engine/types.ts';
import {
  type Catalogue,
  type CatalogueEntry,
  catalogueWith,
  findNetwork,
  listCatalogue,
} from '../models/catalogue.ts';
import { NORMALISATIONS } from '../models/guess.ts';
import { chooseSelectorPrecision, formFor, questionOf } from '../models/precision.ts';
import {
  type PullDependencies,
  type PullOptions,
  prepareAgain,
  pullDependencies,
  pullNetwork,
  removeNetwork,
} from '../models/pull.ts';
import { memoryText, type PreparedRecord } from '../models/record.ts';
import { abortedByStop } from '../ops/stopSignals.ts';
import { choiceOf } from '../server/openEngine.ts';
import { type AddOptions, addNetwork } from './modelsAdd.ts';
import { listNetworks } from './modelsList.ts';
import { type Open, openOnDevice } from './modelsOnDevice.ts';
import { withProgress } from './modelsProgress.ts';
import { megabytes } from './output.ts';

interface ModelsCommandDependencies {
  readonly config: Config;
  readonly catalogueDir: string;
  /** The network beside that of CUTOUT_MODEL; undefined: none. */
  readonly secondNetwork: () => Promise<string | undefined>;
  /** What decides the form of a network. A function, because it loads the addon and only some commands need it. */
  readonly target: () => Parameters<typeof choiceOf>[2];
  /** Opens the engine that `prepare` runs on a GPU. */
  readonly open?: Open;
  readonly out: NodeJS.WriteStream;
  readonly pull?: PullDependencies;
}

/** What `pull` and `prepare` may be told about a network. */
interface FormOptions {
  readonly from?: string;
  readonly precision?: Form;
  readonly device?: Provider;
}

/** `640x480`, or `320` for a square. */
function sizeArgument(text: string): NonNullable<AddOptions['size']> {
  const [, width, height = width] = /^(\d{2,4})(?:x(\d{2,4}))?$/.exec(text) ?? [];
  if (width === undefined)
    throw new InvalidArgumentError('It must be WIDTHxHEIGHT in pixels, e.g. 1024x1024.');
  return { width: Number(width), height: Number(height) };
}

function channelsArgument(text: string): [number, number, number] {
  const [red, green, blue, more] = text.split(',').map(Number);
  const valid = (value: number | undefined): value is number => Number.isFinite(value);
  if (!valid(red) || !valid(green) || !valid(blue) || more !== undefined)
    throw new InvalidArgumentError('It must be three numbers, e.g. 123.675,116.28,103.53.');
  return [red, green, blue];
}

/** What the commands share: the catalogue, and work on one network with its progress and a stop signal. */
class Networks {
  readonly given: ModelsCommandDependencies;
  readonly modelsDir: string;
  readonly catalogue: Catalogue;

  constructor(given: ModelsCommandDependencies) {
    this.given = given;
    this.modelsDir = given.config.engine.modelsDir;
    this.catalogue = catalogueWith(this.modelsDir, given.catalogueDir);
  }

  find(name: string): Promise<CatalogueEntry> {
    return findNetwork(this.catalogue, name);
  }

  /** What a network that makes mattes, or the detector, may be computed in. */
  choice({ manifest }: CatalogueEntry, device?: Provider) {
    const { config, target } = this.given;
    const engine = { ...config.engine, ...(device && { device }) };
    return choiceOf(manifest, engine, target(), config.limits.memory);
  }

  /** The form that this machine uses of a network: of those that it may be in, the usual one until they are measured. */
  async form(entry: CatalogueEntry, device?: Provider): Promise<Form> {
    const { role } = entry.manifest;
    if (role === 'encoder' || role === 'decoder') {
      const question = questionOf(this.given.config.engine, this.given.target());
      return formFor(chooseSelectorPrecision(entry.manifest, question));
    }
    const { choices, kept } = this.choice(entry, device);
    return formFor((await kept.read()) ?? choices[0]);
  }

  /** Does `work`, which the first stop signal aborts with the sentence `stopped`. */
  async run<T>(
    name: string,
    { from, precision, device }: FormOptions,
    work: (entry: CatalogueEntry, options: PullOptions) => Promise<T>,
    stopped = 'Stopped.',
  ): Promise<T> {
    const entry = await this.find(name);
    const form = precision ?? (await this.form(entry, device));
    const { signal, release } = abortedByStop(stopped);
    const dependencies = this.given.pull ?? pullDependencies();
    const { modelsDir } = this;
    return withProgress(this.given.out, name, (observer) =>
      work(entry, { modelsDir, form, observer, from, dependencies, signal }),
    ).finally(release);
  }

  /** Pulls a network and says that it is ready. */
  async pull(name: string, options: FormOptions): Promise<void> {
    const stopped = `Stopped: ${name} is not complete. Run \`cutout models pull ${name}\` to continue.`;
    this.sayReady(name, await this.run(name, options, pullNetwork, stopped));
  }

  sayReady(name: string, record: PreparedRecord): void {
    const batch = record.freeBatch ? 'any batch size' : 'one image at a time';
    const memory = record.memory ? `, ${memoryText(record.memory)} of memory` : '';
    this.given.out.write(
      `${name} is ready: ${megabytes(record.bytes)}, ${record.precision}, ${batch}${memory}.\n`,
    );
  }
}

const precisionOption = () =>
  new Option('--precision <form>', 'form to prepare (default: the one that this machine will use)').choices(
    FORMS,
  );

function listCommand({ given, catalogue, modelsDir }: Networks): Command {
  const { config, secondNetwork, out } = given;
  const { device, model: defaultNetwork } = config.engine;
  return new Command('list')
    .description('list all networks: licence, size, time of a run here, quality, and what is installed')
    .action(async () => {
      // This list is where the name of a network that does not exist is corrected.
      const second = await secondNetwork().catch(() => undefined);
      out.write(await listNetworks({ catalogue, modelsDir, device, defaultNetwork, second }));
    });
}

function pullCommand(networks: Networks): Command {
  const { config, secondNetwork } = networks.given;
  const { model: defaultNetwork } = config.engine;
  return new Command('pull')
    .description('download, verify and prepare a network; continues an interrupted download')
    .argument(
      '[name]',
      `network (default: ${defaultNetwork}, the second network and the detector of subject types)`,
    )
    .option('--from <place>', 'https URL or path of the file; its checksum must match')
    .addOption(precisionOption())
    .action(async (name: string | undefined, options: FormOptions) => {
      const wanted = name ?? defaultNetwork;
      await networks.pull(wanted, options);
      if (options.from !== undefined) return;
      const { decoder } = (await networks.find(wanted)).manifest;
      if (decoder !== undefined) await networks.pull(decoder, {});
      if (name !== undefined) return;
      const second = await secondNetwork();
      if (second !== undefined) await networks.pull(second, {});
      for (const { manifest } of await listCatalogue(networks.catalogue))
        if (manifest.role === 'detector') await networks.pull(manifest.name, {});
    });
}

function prepareCommand(networks: Networks): Command {
  const { config, out, open } = networks.given;
  return new Command('prepare')
    .description('prepare a downloaded network again')
    .argument('[name]', 'network', config.engine.model)
    .addOption(precisionOption())
    .addOption(
      new Option(
        '--device <device>',
        'device to prepare it for (default: CUTOUT_DEVICE); there it is opened and run, in each form that it may be in, and for tensorrt its engines are built, which takes minutes',
      )
        .choices(['cpu', 'cuda', 'tensorrt', 'webgpu'] satisfies Provider[])
        .conflicts('precision'),
    )
    .action(async (name: string, options: FormOptions) => {
      const entry = await networks.find(name);
      const device = options.device ?? config.engine.device;
      const opens = entry.manifest.role === 'matte' && options.precision === undefined;
      const { choices, kept } = networks.choice(entry, device);
      const measures = opens && choices.length > 1;
      // What is prepared again is measured again.
      if (measures) await rm(kept.file, { force: true });
      const record = await networks.run(name, options, prepareAgain);
      // Other networks run on the CPU.
      if (measures || (opens && device !== 'cpu'))
        await openOnDevice(name, device, config, { out, signal: abortedByStop().signal, open });
      networks.sayReady(name, measures ? await networks.run(name, options, pullNetwork) : record);
    });
}

function addCommand({ given: { config, out } }: Networks): Command {
  return new Command('add')
    .description('add a network of your own: reads its file, finds what that says, checks it on an image')
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
    .option('-y, --yes', 'take what is only probable', false)
    .action(async (file: string, options: AddOptions) => {
      await addNetwork(file, options, config, { out, signal: abortedByStop().signal });
    });
}

function removeCommand(networks: Networks): Command {
  const { given, modelsDir } = networks;
  return new Command('remove')
    .description('delete the files of a network; one that was added is forgotten')
    .argument('<name>', 'network')
    .action(async (name: string) => {
      const removed = await networks.run(name, { precision: 'fp32' }, removeNetwork);
      given.out.write(
        removed ? `${name} was removed from ${modelsDir}.\n` : `${name} was not in ${modelsDir}.\n`,
      );
    });
}

const commands = [listCommand, pullCommand, prepareCommand, addCommand, removeCommand];

/** `cutout models …`. Actions reject with ModelError, whose message is one sentence for the operator. */
export function modelsCommand(dependencies: ModelsCommandDependencies): Command {
  const networks = new Networks(dependencies);
  const models = new Command('models');
  for (const command of commands) models.addCommand(command(networks));
  return models;
}
