import { Command, Option } from 'commander';
import { exists } from '../files.ts';
import { type CatalogueEntry, findNetwork, listCatalogue } from '../models/catalogue.ts';
import { ModelError } from '../models/error.ts';
import { FORMS, type Form, networkFiles } from '../models/layout.ts';
import type { PreparedRecord } from '../models/prepare.ts';
import { choosePrecision, formFor, type PrecisionQuestion } from '../models/preparedForm.ts';
import {
  type PullDependencies,
  type PullOptions,
  prepareAgain,
  pullDependencies,
  pullNetwork,
  removeNetwork,
} from '../models/pull.ts';
import { readRecord, verifyPrepared, verifySource } from '../models/verify.ts';
import { type Output, progressOn } from './modelsProgress.ts';
import { table } from './table.ts';

interface ModelsCommandDependencies {
  readonly modelsDir: string;
  readonly catalogueDir: string;
  /** Network of commands that name none. */
  readonly defaultNetwork: string;
  /** The network beside it; undefined: none. */
  readonly secondNetwork: () => Promise<string | undefined>;
  /**
   * The device that networks are prepared for. A function, because it loads the addon and only some commands
   * need it.
   */
  readonly target: () => PrecisionQuestion;
  readonly out: Output;
  readonly pull?: PullDependencies;
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

/** Forms whose prepared files exist; their contents are not checked. */
async function preparedIn(modelsDir: string, { manifest }: CatalogueEntry): Promise<Form[]> {
  const found: Form[] = [];
  for (const form of FORMS) {
    const files = networkFiles(modelsDir, manifest, form);
    if ((await readRecord(files)) && (await exists(files.prepared))) found.push(form);
  }
  return found;
}

/** State of a network, judged by the existence of its files. */
async function stateOf(modelsDir: string, entry: CatalogueEntry): Promise<string> {
  const prepared = await preparedIn(modelsDir, entry);
  if (prepared.length > 0) return `prepared (${prepared.join(', ')})`;
  return (await exists(networkFiles(modelsDir, entry.manifest).source)) ? 'pulled' : 'available';
}

/** `cutout models …`. Actions reject with ModelError, whose message is one sentence for the operator. */
export function modelsCommand(dependencies: ModelsCommandDependencies): Command {
  const { modelsDir, catalogueDir, defaultNetwork, secondNetwork, target, out } = dependencies;
  const command = new Command('models').description('networks: list, pull, verify, prepare, remove');
  const entryOf = (name: string) => findNetwork(catalogueDir, name);
  const usual = ({ manifest }: CatalogueEntry) => formFor(choosePrecision(manifest, target()));
  const precisionOption = () =>
    new Option('--precision <form>', 'form to prepare (default: the one that this machine will use)').choices(
      FORMS,
    );

  const run = async <T>(
    name: string,
    { from, precision: wanted }: { from?: string; precision?: Form },
    work: (entry: CatalogueEntry, options: PullOptions) => Promise<T>,
  ): Promise<T> => {
    const entry = await entryOf(name);
    const observer = progressOn(out, name);
    const form = wanted ?? usual(entry);
    try {
      return await work(entry, {
        modelsDir,
        form,
        observer,
        from,
        dependencies: dependencies.pull ?? pullDependencies(),
      });
    } finally {
      observer.done();
    }
  };
  const ready = (name: string, record: PreparedRecord) => {
    const batch = record.freeBatch ? 'any batch size' : 'one image at a time';
    out.write(`${name} is ready: ${megabytes(record.bytes)}, ${record.precision}, ${batch}.\n`);
  };

  command
    .command('list')
    .description('list the catalogue and what is installed')
    .action(async () => {
      const entries = await listCatalogue(catalogueDir);
      // This list is where the name of a network that does not exist is corrected.
      const second = await secondNetwork().catch(() => undefined);
      const rows = await Promise.all(
        entries.map(async (entry) => {
          const { name, role, licence, file, input } = entry.manifest;
          const mark = name === defaultNetwork ? '*' : name === second ? '+' : ' ';
          const limits = licence.restricted ? `${licence.name} (restricted)` : licence.name;
          const state = `${await stateOf(modelsDir, entry)}${role === 'detector' ? ', for subject types' : ''}`;
          return [`${mark} ${name}`, limits, `${input.width}x${input.height}`, megabytes(file.bytes), state];
        }),
      );
      out.write(table([['  NAME', 'LICENCE', 'INPUT', 'DOWNLOAD', 'STATE'], ...rows]));
      out.write(
        '\n* the network in use (CUTOUT_MODEL), + the second one (CUTOUT_SECOND_MODEL). Restricted: read models/<name>/CARD.md first.\n',
      );
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
      ready(name ?? defaultNetwork, await run(name ?? defaultNetwork, options, pullNetwork));
      if (name !== undefined || options.from !== undefined) return;
      const second = await secondNetwork();
      if (second !== undefined) ready(second, await run(second, {}, pullNetwork));
      for (const { manifest } of await listCatalogue(catalogueDir)) {
        if (manifest.role === 'detector') ready(manifest.name, await run(manifest.name, {}, pullNetwork));
      }
    });

  command
    .command('prepare')
    .description('prepare a downloaded network again')
    .argument('[name]', 'network', defaultNetwork)
    .addOption(precisionOption())
    .action(async (name: string, options: { precision?: Form }) => {
      ready(name, await run(name, options, prepareAgain));
    });

  command
    .command('verify')
    .description('verify the checksums of a network')
    .argument('[name]', 'network', defaultNetwork)
    .action(async (name: string) => {
      const entry = await entryOf(name);
      const needed = usual(entry);
      const files = networkFiles(modelsDir, entry.manifest);
      const states = [[files.source, await verifySource(files, entry.manifest)]];
      // The format this machine uses must exist; others are verified if they do.
      const there = await preparedIn(modelsDir, entry);
      for (const form of new Set([needed, ...there])) {
        const formFiles = networkFiles(modelsDir, entry.manifest, form);
        states.push([formFiles.prepared, await verifyPrepared(formFiles, entry, form)]);
      }
      out.write(table(states));
      if (states.every(([, state]) => state === 'ok')) return;
      const code = states.some(([, state]) => state === 'damaged') ? 'model_damaged' : 'model_missing';
      throw new ModelError(code, `${name} is not ready for use. Run \`cutout models pull ${name}\`.`);
    });

  command
    .command('remove')
    .description('delete the files of a network')
    .argument('<name>', 'network')
    .action(async (name: string) => {
      const removed = await run(name, { precision: 'fp32' }, removeNetwork);
      out.write(removed ? `${name} was removed from ${modelsDir}.\n` : `${name} was not in ${modelsDir}.\n`);
    });

  return command;
}
