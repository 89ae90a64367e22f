import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import type { Span } from '../billing/entries.ts';
import type { Row } from '../billing/present.ts';
import type { Transactional } from '../billing/transaction.ts';
import { deleteImage } from '../commands/erase.ts';
import { UserError } from '../errors.ts';
import { makeFolder } from '../folder.ts';
import type { HandedIn, Improve } from '../improve/improve.ts';
import { formatOption, type ListFormat, render, using, withPeriod } from './listing.ts';

interface OpenImages {
  readonly improve: Improve;
  readonly stores: Transactional;
  close(): Promise<void>;
}

interface ImproveCommandDependencies {
  readonly open: () => Promise<OpenImages>;
  readonly out: { write(text: string): unknown };
}

interface Filter extends Span {
  readonly account?: string;
  readonly tag?: string;
}

const imageRow = (image: HandedIn): Row => ({
  id: image.id,
  time: new Date(image.at).toISOString(),
  account: image.accountId,
  type: image.type,
  width: image.width,
  height: image.height,
  bytes: image.bytes,
  sha256: image.sha256,
  tag: image.tag,
  filename: image.filename,
});

/** Copies images and their metadata into a folder. Rejects with UserError if some are lost. */
async function exportImages(
  improve: Improve,
  folder: string,
  filter: Parameters<Improve['list']>[0],
  out: ImproveCommandDependencies['out'],
): Promise<void> {
  makeFolder('output folder', folder);
  const facts: string[] = [];
  const lost: string[] = [];
  for (const image of await improve.list(filter)) {
    const bytes = await improve.bytes(image);
    if (!bytes) {
      lost.push(image.id);
      continue;
    }
    const file = `${image.id}.${image.type}`;
    await writeFile(path.join(folder, file), bytes);
    facts.push(`${JSON.stringify({ file, ...imageRow(image) })}\n`);
  }
  await writeFile(path.join(folder, 'images.jsonl'), facts.join(''));
  out.write(`${facts.length} images are in ${folder}.\n`);
  if (lost.length > 0) throw new UserError(`The bucket has lost ${lost.length} of them: ${lost.join(', ')}.`);
}

/** `cutout improve list | export | delete`: images that customers handed in. */
export function improveCommand({ open, out }: ImproveCommandDependencies): Command {
  const filtered = (command: Command) =>
    withPeriod(
      command.option('--account <id>', 'only of this account').option('--tag <tag>', 'only with this tag'),
    );
  const query = ({ account, ...rest }: Filter) => ({ accountId: account, ...rest });

  const command = new Command('improve').description('submitted images: list, export, delete');
  filtered(
    command.command('list').description('list the images, oldest first').addOption(formatOption()),
  ).action(({ format, ...filter }: Filter & { format: ListFormat }) =>
    using(open(), async ({ improve }) => {
      out.write(render((await improve.list(query(filter))).map(imageRow), format));
    }),
  );
  filtered(
    command
      .command('export')
      .description('copy the images and images.jsonl, one line of metadata for each, into a folder')
      .argument('<folder>'),
  ).action((folder: string, filter: Filter) =>
    using(open(), ({ improve }) => exportImages(improve, folder, query(filter), out)),
  );
  command
    .command('delete')
    .description('delete images for good')
    .argument('<id...>')
    .action((ids: string[]) =>
      using(open(), async ({ improve, stores }) => {
        const unknown: string[] = [];
        for (const id of ids)
          if (!(await deleteImage({ stores, improve, actor: { id: null } }, id))) unknown.push(id);
        out.write(`${ids.length - unknown.length} deleted.\n`);
        if (unknown.length > 0) throw new UserError(`There is no image ${unknown.join(', ')}.`);
      }),
    );
  return command;
}
