// node build/ts/tools/cards/main.js [--photos FOLDER] NETWORK …
// Writes docs/images/networks/photos.webp, the three photos of the cards side by side, and for every network
// docs/images/networks/NETWORK.webp, what `cutout run --model NETWORK` makes of them on a checkerboard. The networks must
// be pulled. The photos are in ../shared/data/types or FOLDER.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import sharp from 'sharp';

/** Of the set CQ100; the cards name their authors and licence. Nothing is measured or chosen on them. */
const photoNames = [
  'person/cq100__astronaut.png',
  'animal/cq100__siberian_tiger.png',
  'transportation/cq100__motorcycle.png',
];

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const { positionals: networks, values } = parseArgs({
  allowPositionals: true,
  options: { photos: { type: 'string', default: path.join(root, '..', 'shared', 'data', 'types') } },
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

/** An image at the common height, on a checkerboard where it is transparent. */
async function tile(file: string): Promise<{ readonly image: Buffer; readonly width: number }> {
  const { data, info } = await sharp(file).resize({ height }).png().toBuffer({ resolveWithObject: true });
  const { width } = info;
  const ground = sharp(checkerboard(width), { raw: { width, height, channels: 3 } });
  return {
    image: await ground
      .composite([{ input: data }])
      .png()
      .toBuffer(),
    width,
  };
}

/** Images side by side, as WebP in `docs/images/networks`. */
async function writeRow(name: string, files: readonly string[]): Promise<void> {
  const tiles = await Promise.all(files.map(tile));
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

const photos = photoNames.map((name) => path.join(values.photos, name));
mkdirSync(out, { recursive: true });
await writeRow('photos', photos);
for (const network of networks) {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-cards-'));
  try {
    const options = ['--model', network, '--format', 'png', '--out', folder];
    execFileSync(process.execPath, [path.join(root, 'bin', 'cutout.js'), 'run', ...photos, ...options], {
      // One network alone, whatever this machine is configured for.
      env: { ...process.env, CUTOUT_SECOND_MODEL: 'off' },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const results = photos.map((photo) => path.join(folder, `${path.parse(photo).name}.png`));
    await writeRow(network, results);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
