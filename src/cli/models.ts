import { Command } from 'commander';
import type { Provider } from '../engine/types.ts';
import { type CatalogueEntry, findNetwork, listCatalogue } from '../models/catalogue.ts';
import { ModelError } from '../models/error.ts';
import { exists } from '../models/files.ts';
import { networkFiles } from '../models/layout.ts';
import { precisionFor } from '../models/locate.ts';
import type { PreparedRecord } from '../models/prepare.ts';
import {
  type PullDependencies,
  type PullOptions,
  prepareAgain,
  pullDependencies,
  pullNetwork,
  removeNetwork,
} from '../models/pull.ts';
import { readRecord, verifyPrepared, verifySource } from '../models/verify.ts';
import { type Output, progressOn } from './models_progress.ts';
import { table } from './table.ts';

export interface ModelsCommandDependencies {
  readonly modelsDir: string;
  readonly catalogueDir: string;
  /** Network the commands mean when none is named. */
  readonly defaultNetwork: string;
  /** Device the network is prepared for. */
  readonly device: Provider;
  readonly out: Output;
  readonly pull?: PullDependencies;
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

/** How far a network is, from the files that are there, without reading them. */
async function stateOf(
  dependencies: ModelsCommandDependencies,
  { manifest }: CatalogueEntry,
): Promise<string> {
  const files = networkFiles(dependencies.modelsDir, manifest, precisionFor(manifest, dependencies.device));
  if ((await readRecord(files)) && (await exists(files.prepared))) return 'prepared';
  return (await exists(files.source)) ? 'pulled' : 'available';
}

/** `cutout models …`. Actions reject with ModelError, whose message is one sentence for the operator. */
export function modelsCommand(dependencies: ModelsCommandDependencies): Command {
  const { modelsDir, catalogueDir, defaultNetwork, device, out } = dependencies;
  const command = new Command('models').description('networks: list, pull, verify, prepare, remove');
  const entryOf = (name: string) => findNetwork(catalogueDir, name);

  const run = async <T>(
    name: string,
    from: string | undefined,
    work: (entry: CatalogueEntry, options: PullOptions) => Promise<T>,
  ): Promise<T> => {
    const entry = await entryOf(name);
    const observer = progressOn(out, name);
    const precision = precisionFor(entry.manifest, device);
    try {
      return await work(entry, {
        modelsDir,
        precision,
        observer,
        from,
        dependencies: dependencies.pull ?? pullDependencies(),
      });
    } finally {
      observer.done();
    }
  };
  const ready = (name: string, record: PreparedRecord) => {
    const batch = record.freeBatch ? 'any batch size' : 'one picture at a time';
    out.write(`${name} is ready: ${megabytes(record.bytes)}, ${record.precision}, ${batch}.\n`);
  };

  command
    .command('list')
    .description('the catalogue, and what of it is here')
    .action(async () => {
      const entries = await listCatalogue(catalogueDir);
      const rows = await Promise.all(
        entries.map(async (entry) => {
          const { name, role, licence, file, input } = entry.manifest;
          const mark = name === defaultNetwork ? '*' : ' ';
          const limits = licence.restricted ? `${licence.name} (restricted)` : licence.name;
          const state = `${await stateOf(dependencies, entry)}${role === 'detector' ? ', for subject types' : ''}`;
          return [`${mark} ${name}`, limits, `${input.width}x${input.height}`, megabytes(file.bytes), state];
        }),
      );
      out.write(table([['  NAME', 'LICENCE', 'INPUT', 'DOWNLOAD', 'STATE'], ...rows]));
      out.write('\n* the network in use (CUTOUT_MODEL). Restricted: read models/<name>/CARD.md first.\n');
    });

  command
    .command('pull')
    .description('fetch, check and prepare a network; an interrupted pull is continued')
    .argument('[name]', `network; without it ${defaultNetwork} and what tells subject types`)
    .option('--from <place>', 'take the file from this https address or local file; its sum must match')
    .action(async (name: string | undefined, { from }: { from?: string }) => {
      ready(name ?? defaultNetwork, await run(name ?? defaultNetwork, from, pullNetwork));
      if (name !== undefined || from !== undefined) return;
      for (const { manifest } of await listCatalogue(catalogueDir)) {
        if (manifest.role === 'detector')
          ready(manifest.name, await run(manifest.name, undefined, pullNetwork));
      }
    });

  command
    .command('prepare')
    .description('make the prepared file of a pulled network again')
    .argument('[name]', 'network', defaultNetwork)
    .action(async (name: string) => {
      ready(name, await run(name, undefined, prepareAgain));
    });

  command
    .command('verify')
    .description('read every byte of a network and compare sums')
    .argument('[name]', 'network', defaultNetwork)
    .action(async (name: string) => {
      const { manifest } = await entryOf(name);
      const precision = precisionFor(manifest, device);
      const files = networkFiles(modelsDir, manifest, precision);
      const source = await verifySource(files, manifest);
      const prepared = await verifyPrepared(files, manifest, precision);
      out.write(
        table([
          [files.source, source],
          [files.prepared, prepared],
        ]),
      );
      if (source === 'ok' && prepared === 'ok') return;
      const code = source === 'damaged' || prepared === 'damaged' ? 'model_damaged' : 'model_missing';
      throw new ModelError(code, `${name} is not ready for use. Run \`cutout models pull ${name}\`.`);
    });

  command
    .command('remove')
    .description('delete the files of a network')
    .argument('<name>', 'network')
    .action(async (name: string) => {
      const removed = await run(name, undefined, removeNetwork);
      out.write(removed ? `${name} was removed from ${modelsDir}.\n` : `${name} was not in ${modelsDir}.\n`);
    });

  return command;
}
