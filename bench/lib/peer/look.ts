import sharp from 'sharp';
import type { Strips } from '../outcome.ts';
import { differenceMap, type Matte } from './agreement.ts';

type Images = Strips['rows'][number]['images'];

const WIDTH = 340;
/** Side of the window shown enlarged, in pixels of the image. */
const WINDOW = 200;

export interface Region {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

const address = (type: 'webp' | 'jpeg' | 'png', bytes: Buffer): string =>
  `data:image/${type};base64,${bytes.toString('base64')}`;

const unlimited = { limitInputPixels: false } as const;

/** Of a grid of windows half a window apart, the one in which the mattes differ most. */
export function worstWindow(a: Matte, b: Matte, side = WINDOW): Region {
  const [width, height] = [Math.min(side, a.width), Math.min(side, a.height)];
  const cell = Math.max(1, side >> 1);
  const [columns, rows] = [Math.ceil(a.width / cell), Math.ceil(a.height / cell)];
  const sums = new Float64Array(columns * rows);
  for (let y = 0, i = 0; y < a.height; y++) {
    const row = Math.floor(y / cell) * columns;
    for (let x = 0; x < a.width; x++, i++) {
      const at = row + Math.floor(x / cell);
      sums[at] = (sums[at] ?? 0) + Math.abs((a.alpha[i] ?? 0) - (b.alpha[i] ?? 0));
    }
  }
  let best = { sum: -1, column: 0, row: 0 };
  for (let row = 0; row < Math.max(1, rows - 1); row++) {
    for (let column = 0; column < Math.max(1, columns - 1); column++) {
      const at = row * columns + column;
      const right = column + 1 < columns;
      const below = row + 1 < rows;
      const sum =
        (sums[at] ?? 0) +
        (right ? (sums[at + 1] ?? 0) : 0) +
        (below ? (sums[at + columns] ?? 0) : 0) +
        (right && below ? (sums[at + columns + 1] ?? 0) : 0);
      if (sum > best.sum) best = { sum, column, row };
    }
  }
  return {
    left: Math.min(best.column * cell, a.width - width),
    top: Math.min(best.row * cell, a.height - height),
    width,
    height,
  };
}

/** Source, both cut-outs, their difference, and the place of the largest difference at the image's own scale. */
export async function lookAt(
  source: Buffer,
  ours: { readonly png: Buffer; readonly matte: Matte },
  theirs: { readonly png: Buffer; readonly matte: Matte; readonly title: string },
): Promise<Images> {
  const { width, height } = ours.matte;
  const window = worstWindow(ours.matte, theirs.matte);
  const small = async (png: Buffer) =>
    address(
      'webp',
      await sharp(png, unlimited).resize(WIDTH).webp({ quality: 82, alphaQuality: 90 }).toBuffer(),
    );
  const close = async (png: Buffer) =>
    address(
      'webp',
      await sharp(png, unlimited)
        .extract(window)
        .resize(WIDTH, undefined, { kernel: 'nearest' })
        .webp({ quality: 90, alphaQuality: 100 })
        .toBuffer(),
    );
  const map = sharp(differenceMap(ours.matte, theirs.matte), {
    raw: { width, height, channels: 1 },
    ...unlimited,
  });
  const place = `${window.width} x ${window.height} at ${window.left}, ${window.top}`;
  return [
    {
      caption: 'image',
      src: address(
        'jpeg',
        await sharp(source, unlimited).rotate().resize(WIDTH).jpeg({ quality: 82 }).toBuffer(),
      ),
    },
    { caption: 'ours', src: await small(ours.png), checker: true },
    { caption: theirs.title, src: await small(theirs.png), checker: true },
    {
      caption: 'difference of the mattes',
      src: address('webp', await map.resize(WIDTH).webp({ quality: 82 }).toBuffer()),
    },
    { caption: `ours, ${place}`, src: await close(ours.png), checker: true },
    { caption: 'theirs, the same place', src: await close(theirs.png), checker: true },
  ];
}
