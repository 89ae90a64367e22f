import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import sharp from 'sharp';

/** Lossless and quick: these files are large and read once. */
export const png = (data, { width, height }, channels) =>
  sharp(data, { raw: { width, height, channels } }).png({ compressionLevel: 1 }).toBuffer();

/**
 * Writes an image as `images/NAME.png`, `alphas/NAME.png` (8-bit gray) and `foregrounds/NAME.png` below a folder: the
 * layout that `npm run bench -- quality --images … --alphas … --foregrounds …` reads.
 * @param {string} folder @param {import('./index.js').Image} image
 */
export async function writeImage(folder, image) {
  const parts = [
    ['images', image.composite, 3],
    ['alphas', image.alpha, 1],
    ['foregrounds', image.foreground, 3],
  ];
  await Promise.all(
    parts.map(async ([part, data, channels]) => {
      await mkdir(path.join(folder, part), { recursive: true });
      await writeFile(path.join(folder, part, `${image.name}.png`), await png(data, image, channels));
    }),
  );
}
