import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { composePicture, cutoutsIn, picturesIn } from './cutouts.js';
import { drawPicture, hashOf, KINDS, pictureList, sizeOf } from './index.js';
import { writePicture } from './write.js';

export const USAGE = `npm run bench -- generate --out DIR [--count N] [--mp 4] [--seed 1] [--kinds hair,fur]
                                    [--cutouts DIR --photos DIR]
  --count N      pictures to draw (default: one of each kind)
  --kinds LIST   of ${KINDS.join(', ')}
  --cutouts DIR  instead of drawing: RGBA files with their own alpha, laid over …
  --photos DIR   … photos of this folder`;

const OPTIONS = {
  out: { type: 'string' },
  count: { type: 'string' },
  mp: { type: 'string' },
  seed: { type: 'string' },
  kinds: { type: 'string' },
  cutouts: { type: 'string' },
  photos: { type: 'string' },
};

/**
 * Pictures with exact truth, one at a time: drawn, or composed from cut-outs and photos.
 * @param {{count?: number, megapixels?: number, seed?: number, kinds?: string[], cutouts?: string, photos?: string}} options
 * @returns {AsyncGenerator<import('./index.js').Picture>}
 */
export async function* generated({ count, megapixels = 4, seed = 1, kinds = KINDS, cutouts, photos }) {
  const size = sizeOf(megapixels);
  if (cutouts) {
    if (!photos) throw new RangeError('--cutouts needs --photos DIR to lay them over');
    const fronts = await cutoutsIn(cutouts);
    const behind = (await picturesIn(photos)).filter((file) => !fronts.includes(file));
    if (fronts.length === 0) throw new RangeError(`no picture with transparent parts in ${cutouts}`);
    if (behind.length === 0) throw new RangeError(`no photo in ${photos}`);
    const total = count ?? fronts.length;
    for (let i = 0; i < total; i++) {
      // Spread over the whole folder, whatever the count.
      const cutout = fronts[Math.floor((i * fronts.length) / total) % fronts.length];
      yield composePicture({ cutout, photo: behind[(i * 7 + seed) % behind.length], ...size, seed });
    }
    return;
  }
  for (const { kind, seed: own } of pictureList(count ?? kinds.length, { kinds, seed })) {
    yield drawPicture({ kind, ...size, seed: own });
  }
}

/** @param {string[]} args of the command line, without its name */
export async function run(args) {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (!values.out) throw new RangeError(`--out DIR is missing\n${USAGE}`);
  const kinds = values.kinds?.split(',') ?? KINDS;
  const unknown = kinds.find((kind) => !KINDS.includes(kind));
  if (unknown) throw new RangeError(`no kind ${unknown}: ${KINDS.join(', ')}`);
  const list = [];
  await mkdir(values.out, { recursive: true });
  let writing = Promise.resolve();
  for await (const picture of generated({
    count: values.count && Number(values.count),
    megapixels: Number(values.mp ?? 4),
    seed: Number(values.seed ?? 1),
    kinds,
    cutouts: values.cutouts,
    photos: values.photos,
  })) {
    await writing;
    const { name, kind, width, height } = picture;
    list.push({ name, kind, width, height, sha256: hashOf(picture) });
    writing = writePicture(values.out, picture);
    console.log(`${name}  ${width}×${height}`);
  }
  await writing;
  await writeFile(path.join(values.out, 'pictures.json'), `${JSON.stringify(list, null, 1)}\n`);
}
