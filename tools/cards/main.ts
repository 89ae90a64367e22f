// node build/ts/tools/cards/main.js [--images FOLDER] NETWORK …
// Writes docs/images/networks/drawings.webp, three drawings side by side, and for every network
// docs/images/networks/NETWORK.webp, what `cutout run --model NETWORK` makes of them on a checkerboard. The networks must
// be pulled. FOLDER has other images to see instead.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import sharp from 'sharp';

/** Of `bench generate`: strands before bricks, fur before a background of its colour, and leaves. */
const kinds = ['hair', 'like', 'leaves'];

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const { positionals: networks, values } = parseArgs({
  allowPositionals: true,
  options: { images: { type: 'string' } },
});
const out = path.join(root, 'docs', 'images', 'networks');

/** Height of a picture, and the gap between two, in pixels. */
const height = 320;
const gap = 8;
/** Side of a square of the checkerboard. */
const square = 10;

/** A checkerboard in two light grays; RGB. */
function checkerboard(width: number): Buffer {
  const pixels = Buffer.alloc(width * height * 3);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const dark = (Math.floor(x / square) + Math.floor(y / square)) % 2 === 1;
      pixels.fill(dark ? 0xd8 : 0xff, (y * width + x) * 3, (y * width + x + 1) * 3);
    }
  return pixels;
}

interface Tile {
  readonly image: Buffer;
  readonly width: number;
}

/** An image at the common height, on a checkerboard where it is transparent; nothing is on it without `result`. */
async function tile(image: string, result: string | undefined): Promise<Tile> {
  const { data, info } = await sharp(image).resize({ height }).png().toBuffer({ resolveWithObject: true });
  const { width } = info;
  const shown = result === image ? data : result && (await sharp(result).resize({ height }).png().toBuffer());
  const ground = sharp(checkerboard(width), { raw: { width, height, channels: 3 } });
  const composed = ground.composite(shown ? [{ input: shown }] : []);
  return { image: await composed.png().toBuffer(), width };
}

/** Images side by side, as WebP in `docs/images/networks`. */
async function writeRow(
  name: string,
  images: readonly string[],
  results: readonly (string | undefined)[],
): Promise<void> {
  const tiles = await Promise.all(images.map((image, i) => tile(image, results[i])));
  let left = 0;
  const placed = tiles.map(({ image, width }) => {
    const here = { input: image, left, top: 0 };
    left += width + gap;
    return here;
  });
  const file = path.join(out, `${name}.webp`);
  const { size } = await sharp({ create: { width: left - gap, height, channels: 3, background: '#fff' } })
    .composite(placed)
    .webp({ quality: 72, effort: 6 })
    .toFile(file);
  console.log(`${path.relative(root, file)}: ${(size / 1000).toFixed(0)} kB`);
}

const work = mkdtempSync(path.join(tmpdir(), 'cutout-cards-'));
const node = (...args: readonly string[]) =>
  execFileSync(process.execPath, args, {
    cwd: root,
    // One network alone, whatever this machine is configured for.
    env: { ...process.env, CUTOUT_SECOND_MODEL: 'off' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
try {
  if (values.images === undefined)
    node('bench/index.js', 'generate', '--out', work, '--mp', '0.4', '--kinds', kinds.join(','));
  const folder = values.images ?? path.join(work, 'images');
  const images = readdirSync(folder)
    .sort()
    .map((name) => path.join(folder, name));
  mkdirSync(out, { recursive: true });
  await writeRow('drawings', images, images);
  for (const network of networks) {
    const results = path.join(work, network);
    try {
      node('bin/cutout.js', 'run', ...images, '--model', network, '--format', 'png', '--out', results);
    } catch (error) {
      // It ends with 1 if there is no subject in one of them.
      if (!existsSync(results)) throw error;
    }
    const resultOf = (image: string) => path.join(results, `${path.parse(image).name}.png`);
    await writeRow(
      network,
      images,
      images.map(resultOf).map((file) => (existsSync(file) ? file : undefined)),
    );
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
