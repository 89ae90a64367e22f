import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import type { Command } from 'commander';
import sharp from 'sharp';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { openImages } from './lib/images.ts';
import { measured, type Outcome } from './lib/outcome.ts';
import { noTestAddon, testAddon } from './lib/paths.ts';
import { median } from './lib/stats.ts';

interface PngBenchOptions extends Shared {
  readonly threads: number;
}

export const command: BenchCommand = {
  name: 'png',
  title: 'PNG encoder',
  summary: "our PNG encoder beside libvips'",
  unavailable: noTestAddon,
  shared: { rounds: 5, images: true },
  options: (command: Command) =>
    command.option('--threads <n>', 'threads of our encoder', values.whole, availableParallelism()),
  all: { full: { rounds: 3 } },
};

interface PngAddon {
  readonly png: {
    timePng(
      pixels: Buffer,
      width: number,
      height: number,
      options: { readonly alphaOnly: boolean; readonly effort: number },
      /** Besides the calling thread, which takes part. */
      poolThreads: number,
      rounds: number,
    ): { readonly ms: readonly number[]; readonly size: number };
  };
}

const SIZES = { '1 MP': [1200, 833], '12 MP': [4240, 2830] } as const;

/** Opacity 0..255 of a large shape with a soft, hairy rim that covers about half the image. */
function opacity(x: number, y: number, width: number, height: number): number {
  const dx = (x / width - 0.5) / 0.36;
  const dy = (y / height - 0.55) / 0.45;
  const angle = Math.atan2(dy, dx);
  const radius = Math.hypot(dx, dy) + 0.03 * Math.sin(angle * 60) + 0.02 * Math.sin(angle * 333);
  return Math.round(255 * Math.min(1, Math.max(0, 0.5 + (1 - radius) * 12)));
}

/** Makes an opaque RGBA image a cut-out: colour 0 where alpha is 0. */
function cutOut(pixels: Buffer, width: number, height: number): Buffer {
  const result = Buffer.from(pixels);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i += 4) {
      const alpha = opacity(x, y, width, height);
      if (alpha === 0) result.writeUInt32LE(0, i);
      else result[i + 3] = alpha;
    }
  }
  return result;
}

async function drawing(width: number, height: number): Promise<Buffer> {
  const circles = Array.from({ length: 60 }, (_, i) => {
    const at = (n: number) => ((i * 7919 * n * 31) % 997) / 997;
    const fill = `hsl(${Math.round(at(4) * 360)},70%,50%)`;
    return `<circle cx="${at(1) * width}" cy="${at(2) * height}" r="${width * (0.01 + 0.06 * at(3))}"
      fill="${fill}" stroke="black" stroke-width="3"/>`;
  });
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${circles.join('')}</svg>`;
  return sharp(Buffer.from(svg)).ensureAlpha().raw().toBuffer();
}

async function rasters(images: readonly string[] | undefined, width: number, height: number) {
  const jpeg = await openImages(images).jpeg((width * height) / 1e6);
  const opaque = await sharp(jpeg).resize(width, height, { fit: 'fill' }).ensureAlpha().raw().toBuffer();
  return {
    opaque,
    'cut out': cutOut(opaque, width, height),
    'flat colours': await drawing(width, height),
  };
}

interface Run {
  readonly size: string;
  readonly image: string;
  readonly encoder: string;
  readonly ms: readonly number[];
  readonly raw: number;
  readonly bytes: number;
}

async function viaLibvips(pixels: Buffer, width: number, height: number, level: number, rounds: number) {
  const ms: number[] = [];
  let bytes = 0;
  for (let round = 0; round < rounds; round++) {
    const begin = performance.now();
    const image = sharp(pixels, { raw: { width, height, channels: 4 } });
    bytes = (await image.png({ compressionLevel: level }).toBuffer()).length;
    ms.push(performance.now() - begin);
  }
  return { ms, bytes };
}

export async function run(
  { threads, rounds, images }: PngBenchOptions,
  { progress }: Context,
): Promise<Outcome> {
  const { png } = createRequire(import.meta.url)(testAddon) as PngAddon;
  const runs: Run[] = [];
  for (const [size, [width, height]] of Object.entries(SIZES)) {
    for (const [image, pixels] of Object.entries(await rasters(images, width, height))) {
      progress(`${size}, ${image}`);
      const add = (encoder: string, ms: readonly number[], bytes: number) =>
        runs.push({ size, image, encoder, ms, raw: pixels.length, bytes });
      for (const effort of [1, 3, 4, 6, 8]) {
        const own = png.timePng(pixels, width, height, { alphaOnly: false, effort }, threads - 1, rounds);
        add(`ours, effort ${effort}`, own.ms, own.size);
      }
      const matte = png.timePng(pixels, width, height, { alphaOnly: true, effort: 3 }, threads - 1, rounds);
      add('ours, alpha only', matte.ms, matte.size);
      for (const level of [1, 6]) {
        const { ms, bytes } = await viaLibvips(pixels, width, height, level, Math.min(rounds, 3));
        add(`libvips, level ${level}`, ms, bytes);
      }
    }
  }
  return {
    settings: { threads, rounds },
    figures: runs.map(({ size, image, encoder, ms }) =>
      measured(
        `png.${size}.${image}.${encoder}`.replaceAll(/[ ,]+/g, '_'),
        `${encoder}: ${size}, ${image}`,
        'ms',
        ms,
      ),
    ),
    parts: [
      {
        kind: 'table',
        title: 'Encoders',
        columns: ['size', 'image', 'encoder', 'ms', 'MB a second', 'kB'],
        rows: runs.map(({ size, image, encoder, ms, raw, bytes }) => [
          size,
          image,
          encoder,
          median(ms),
          raw / median(ms) / 1000,
          bytes / 1000,
        ]),
      },
      {
        kind: 'bars',
        title: '12 MP, cut out',
        unit: 'ms',
        bars: runs
          .filter(({ size, image }) => size === '12 MP' && image === 'cut out')
          .map(({ encoder, ms }) => ({
            label: encoder,
            value: median(ms),
            series: encoder.startsWith('ours') ? 'ours' : 'libvips',
          })),
      },
    ],
  };
}
