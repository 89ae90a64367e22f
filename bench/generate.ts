import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import { values } from './lib/command.ts';
import { generated } from './quality/generate/images.js';
import { hashOf, KINDS } from './quality/generate/index.js';
import { writeImage } from './quality/generate/write.js';

interface Options {
  readonly out: string;
  readonly count?: number;
  readonly mp: number;
  readonly seed: number;
  readonly kinds: string[];
  readonly cutouts?: string;
  readonly photos?: string;
}

/** Writes the images and a list with their checksums, `images.json`. One is written while the next is drawn. */
async function generate({ out, mp, ...what }: Options, tell: (text: string) => void): Promise<void> {
  const list: object[] = [];
  await mkdir(out, { recursive: true });
  let writing = Promise.resolve();
  for await (const image of generated({ ...what, megapixels: mp })) {
    await writing;
    const { name, kind, width, height } = image;
    list.push({ name, kind, width, height, sha256: hashOf(image) });
    writing = writeImage(out, image);
    tell(`${name}  ${width}×${height}\n`);
  }
  await writing;
  await writeFile(path.join(out, 'images.json'), `${JSON.stringify(list, null, 1)}\n`);
}

/** Not a bench: generates the input of `quality --images … --alphas … --foregrounds …`. */
export const generateCommand = (out: { write(text: string): unknown }): Command =>
  new Command('generate')
    .description('writes images whose alpha and colours are known exactly, drawn or composed')
    .requiredOption('--out <folder>', 'gets images, alphas and foregrounds')
    .option('--count <n>', 'images (default: one of each kind, or all cut-outs)', values.whole)
    .option('--mp <n>', 'megapixels of each', values.number, 4)
    .option('--seed <n>', 'of the generator', values.whole, 1)
    .option('--kinds <list>', `of ${KINDS.join(', ')}`, values.words(...KINDS), KINDS)
    .option('--cutouts <folder>', 'instead of drawing: RGBA images with their own alpha, laid over …')
    .option('--photos <folder>', '… photos of this folder')
    .action((options: Options) => generate(options, (text) => out.write(text)));
