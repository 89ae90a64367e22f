// node build/ts/tools/limits/main.js [DATA]
// Writes docs/images/limits/NAME.webp for each kind of image that docs/matting.md names as wrong without doubt: the image,
// on green what `cutout run` makes of it, and on green the reference where there is one. Images are those of DATA
// (../shared/data); both networks must be pulled.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp, { type OverlayOptions } from 'sharp';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const data = path.resolve(process.argv[2] ?? path.join(root, '../shared/data'));
const out = path.join(root, 'docs', 'images', 'limits');

/** The images, whose licences allow to show them; credits stand in docs/matting.md. */
const kinds: Readonly<Record<string, string>> = {
  choice: 'coco_permissive/images/000000008021.jpg',
  plate: 'coco_permissive/images/000000007991.jpg',
  dark: 'coco_permissive/images/000000000459.jpg',
  beside: 'types/product/clothing_cc0__outwear_00149032-3dd6-426e-9bc0-d53032536a42.jpg',
  tulle: 'types/product/clothing_cc0__skirt_284149a9-e71e-4955-8228-7511fa592bc1.jpg',
  outline: 'types/graphic/gophers_cc0__characters_28.png',
};

/** Height of a picture, and the gap between two, in pixels. */
const height = 240;
const gap = 8;
const green = '#00b140';

type Pixels = string | Buffer;

const small = (image: Pixels) => sharp(image).resize({ height }).png().toBuffer();
const onGreen = (image: Pixels) => sharp(image).flatten({ background: green }).png().toBuffer();

/** The image under its reference, COCO's mask or a drawing's own alpha; undefined where there is none. */
async function reference(source: string): Promise<Buffer | undefined> {
  if (!source.startsWith('coco_permissive'))
    return source.endsWith('.png') ? small(path.join(data, source)) : undefined;
  const mask = await sharp(path.join(data, source.replace('images', 'masks').replace('.jpg', '.png')))
    .extractChannel(0)
    .toBuffer();
  return sharp(path.join(data, source)).joinChannel(mask).png().toBuffer();
}

/** Images of the common height side by side, as WebP. */
async function writeRow(name: string, images: readonly Buffer[]): Promise<void> {
  let left = 0;
  const placed: OverlayOptions[] = [];
  for (const input of images) {
    placed.push({ input, left, top: 0 });
    left += (await sharp(input).metadata()).width + gap;
  }
  const file = path.join(out, `${name}.webp`);
  const { size } = await sharp({ create: { width: left - gap, height, channels: 3, background: '#fff' } })
    .composite(placed)
    .webp({ quality: 72, effort: 6 })
    .toFile(file);
  console.log(`${path.relative(root, file)}: ${(size / 1000).toFixed(0)} kB`);
}

const work = mkdtempSync(path.join(tmpdir(), 'cutout-limits-'));
mkdirSync(out, { recursive: true });
try {
  for (const [name, source] of Object.entries(kinds)) {
    const image = path.join(work, `${name}.png`);
    await sharp(path.join(data, source))
      .flatten({ background: '#fff' })
      .resize(1024, 1024, { fit: 'inside', withoutEnlargement: true })
      .toFile(image);
    const args = ['bin/cutout.js', 'run', image, '--format', 'png', '--out', path.join(work, 'results')];
    execFileSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
    const result = path.join(work, 'results', `${name}.png`);
    const truth = await reference(source);
    const cutOuts = truth === undefined ? [result] : [result, truth];
    const onGround = await Promise.all(cutOuts.map(async (each) => small(await onGreen(each))));
    await writeRow(name, [await small(image), ...onGround]);
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
