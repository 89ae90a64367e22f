import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';
import { components, type Mask } from './geometry.ts';

/** A photo with the subjects in it that a person might choose. */
export interface Scene {
  readonly source: string;
  readonly name: string;
  readonly jpeg: Buffer;
  readonly width: number;
  readonly height: number;
  /** Visible parts of the subjects; those that are chosen in turn come first. */
  readonly subjects: readonly Uint8Array[];
  /** How many of them are chosen; the others only have to be left out. */
  readonly choices: number;
}

/** Photos of one subject each, with its alpha: a file of the same name with another ending. */
interface Source {
  readonly name: string;
  readonly photos: string;
  readonly alphas: string;
  /** Endings of the alphas' files, `.png` unless given, and of the photos'. */
  readonly suffix?: string;
  readonly photo?: '.jpg' | '.png';
  /** Only these: the others show two subjects, or glass, webs and twigs, which nobody chooses by one point. */
  readonly only?: readonly string[];
}

/** By folder of the test data. Thresholds are chosen on `gfm` and `p3m`; the others are held out. */
const SOURCES: readonly Source[] = [
  { name: 'gfm', photos: 'jizhizili_peers/gfm_samples', alphas: 'jizhizili_peers/gfm_samples_alpha' },
  { name: 'gfm', photos: 'jizhizili_peers/gfm_am2k', alphas: 'jizhizili_peers/gfm_am2k' },
  { name: 'p3m', photos: 'jizhizili_peers/p3m_demo', alphas: 'jizhizili_peers/p3m_demo_alpha' },
  {
    name: 'aim',
    photos: 'jizhizili_peers/aim_samples',
    alphas: 'jizhizili_peers/aim_samples_alpha',
    only: ['1'],
  },
  {
    name: 'aim',
    photos: 'jizhizili_peers/aim_demo',
    alphas: 'jizhizili_peers/aim_demo',
    only: ['o_0b7228ec'],
  },
  {
    name: 'rembg',
    photos: 'rembg/examples',
    alphas: 'rembg/examples',
    suffix: '.out.png',
    only: ['animal-1', 'animal-2', 'car-2', 'girl-1', 'girl-2', 'girl-3'],
  },
  {
    name: 'rembg',
    photos: 'rembg/fixtures',
    alphas: 'rembg/results',
    suffix: '.birefnet-general.png',
    only: ['anime-girl-1', 'car-1', 'cloth-1'],
  },
  {
    name: 'u2net',
    photos: 'u2net/test_images',
    alphas: 'u2net/u2net_results',
    only: ['0002-01', '0003', 'bike', 'horse', 'lamp2_meitu_1', 'sailboat3'],
  },
  {
    name: 'u2net',
    photos: 'u2net/test_images',
    alphas: 'u2net/u2net_results',
    photo: '.png',
    only: ['im_21', 'whisk'],
  },
  {
    name: 'pymatting',
    photos: 'pymatting_lemur',
    alphas: 'pymatting_lemur',
    suffix: '_alpha_fba.png',
    photo: '.png',
    only: ['lemur'],
  },
  {
    name: 'coco',
    photos: 'coco_permissive/images',
    alphas: 'coco_permissive/masks',
    only: ['000000000030', '000000000285', '000000000294', '000000000471', '000000000785', '000000001296'],
  },
];

export const SOURCE_NAMES = ['gfm', 'p3m', 'aim', 'rembg', 'u2net', 'pymatting', 'coco'] as const;
export type SourceName = (typeof SOURCE_NAMES)[number];

/** Photos behind the subjects: landscapes, buildings and still lifes without a person or an animal of their own. */
const BACKGROUNDS = { folder: 'types/other', prefix: 'cq100__' };

/** Photos with masks by people, and which connected parts of the mask, from the left, are one whole subject each. */
const COCO: Readonly<Record<string, readonly number[]>> = {
  '000000000165': [0, 1],
  '000000000308': [1],
  '000000000529': [1],
  '000000001000': [0],
  '000000008844': [1],
  '000000009483': [0, 1],
};
const COCO_PART = 0.015;

const CANVAS = { width: 1224, height: 816 } as const;

/** Deterministic numbers from 0 to 1. */
export function numbers(seed: number): () => number {
  let state = (seed * 2654435761) >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

type Cutout = readonly [photo: string, alpha: string];

function cutoutsOf(data: string, name: SourceName): Cutout[] {
  const chosen = SOURCES.filter((source) => source.name === name);
  return chosen.flatMap(({ photos, alphas, suffix = '.png', photo = '.jpg', only }) =>
    readdirSync(path.join(data, photos))
      .filter((file) => file.endsWith(photo) && (only?.includes(path.parse(file).name) ?? true))
      .sort()
      .map(
        (file): Cutout => [
          path.join(data, photos, file),
          path.join(data, alphas, `${path.parse(file).name}${suffix}`),
        ],
      ),
  );
}

async function alphaOf(file: string, { width, height }: { width: number; height: number }): Promise<Buffer> {
  const { hasAlpha } = await sharp(file).metadata();
  const plane = hasAlpha ? sharp(file).extractChannel('alpha') : sharp(file).extractChannel(0);
  return plane.resize(width, height, { fit: 'fill' }).toColourspace('b-w').raw().toBuffer();
}

interface Layer {
  readonly image: Buffer;
  readonly alpha: Uint8Array;
}

/** A subject on a clear canvas: 55 to 95 % as high as it, in its left or right half, near the ground. */
async function layer([photo, alpha]: Cutout, right: boolean, random: () => number): Promise<Layer> {
  const { data: rgb, info } = await sharp(photo)
    .toColourspace('srgb')
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const { width, height } = info;
  const joined = await sharp(rgb, { raw: { width, height, channels: 3 } })
    .joinChannel(await alphaOf(alpha, { width, height }), { raw: { width, height, channels: 1 } })
    .png({ compressionLevel: 1 })
    .toBuffer();
  const trimmed = await sharp(joined)
    .trim({ background: { r: 0, g: 0, b: 0, alpha: 0 }, threshold: 20 })
    .png({ compressionLevel: 1 })
    .toBuffer();
  const side = Math.round(CANVAS.height * (0.55 + 0.4 * random()));
  const { data, info: size } = await sharp(trimmed)
    .resize(side, side, { fit: 'inside' })
    .png({ compressionLevel: 1 })
    .toBuffer({ resolveWithObject: true });
  const within = (value: number, end: number) => Math.round(Math.min(Math.max(value, 0), Math.max(end, 0)));
  const left = within(
    (right ? CANVAS.width / 2 : 0) + (0.15 * random() - 0.05) * CANVAS.width,
    CANVAS.width - size.width,
  );
  const top = within(
    CANVAS.height - size.height - 0.1 * random() * CANVAS.height,
    CANVAS.height - size.height,
  );
  const image = await sharp({
    create: { ...CANVAS, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } },
  })
    .composite([{ input: data, left, top }])
    .png({ compressionLevel: 1 })
    .toBuffer();
  return { image, alpha: await sharp(image).extractChannel('alpha').raw().toBuffer() };
}

async function composed(
  source: string,
  [first, second]: readonly [Cutout, Cutout],
  background: string,
  random: () => number,
): Promise<Scene> {
  const behind = await layer(first, false, random);
  const front = await layer(second, true, random);
  const jpeg = await sharp(background)
    .resize(CANVAS.width, CANVAS.height, { fit: 'cover' })
    .removeAlpha()
    .composite([{ input: behind.image }, { input: front.image }])
    .jpeg({ quality: 92 })
    .toBuffer();
  const visible = behind.alpha.map((value, at) => (value * (255 - (front.alpha[at] ?? 0))) / 255);
  const name = [first, second].map(([photo]) => path.parse(photo).name).join(' and ');
  return { source, name, jpeg, ...CANVAS, subjects: [visible, front.alpha], choices: 2 };
}

/** Two subjects of these sources over a photo, without end. */
async function* composites(
  data: string,
  sources: readonly SourceName[],
  seed: number,
): AsyncGenerator<Scene> {
  const random = numbers(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const cutouts = sources.flatMap((source) => cutoutsOf(data, source));
  const folder = path.join(data, BACKGROUNDS.folder);
  const backgrounds = readdirSync(folder)
    .filter((file) => file.startsWith(BACKGROUNDS.prefix))
    .sort()
    .map((file) => path.join(folder, file));
  for (;;) {
    const first = pick(cutouts);
    const second = pick(cutouts.filter((each) => each !== first));
    yield await composed('composed', [first, second], pick(backgrounds), random);
  }
}

async function* photographed(data: string): AsyncGenerator<Scene> {
  for (const [name, whole] of Object.entries(COCO)) {
    const jpeg = await sharp(path.join(data, 'coco_permissive', 'images', `${name}.jpg`))
      .jpeg({ quality: 95 })
      .toBuffer();
    const { width = 0, height = 0 } = await sharp(jpeg).metadata();
    const values = await alphaOf(path.join(data, 'coco_permissive', 'masks', `${name}.png`), {
      width,
      height,
    });
    const mask: Mask = { data: values, width, height };
    const parts = components(mask, COCO_PART);
    const chosen = whole.flatMap((at) => parts[at] ?? []);
    const others = parts.filter((_, at) => !whole.includes(at));
    yield {
      source: 'coco',
      name,
      jpeg,
      width,
      height,
      subjects: [...chosen, ...others],
      choices: chosen.length,
    };
  }
}

/** Composed and photographed scenes in turn, until there are this many choices. */
export async function* scenes(
  data: string,
  sources: readonly SourceName[],
  { count, seed }: { readonly count: number; readonly seed: number },
): AsyncGenerator<Scene> {
  const open = [composites(data, sources, seed), ...(sources.includes('coco') ? [photographed(data)] : [])];
  let choices = 0;
  while (open.length > 0) {
    for (const each of [...open]) {
      const { done, value } = await each.next();
      if (done) {
        open.splice(open.indexOf(each), 1);
        continue;
      }
      yield value;
      choices += value.choices;
      if (choices >= count) return;
    }
  }
}

export const hasData = (data: string): boolean => existsSync(path.join(data, 'jizhizili_peers'));
