import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';

/** Input of the benches: JPEGs of any size, the same bytes on every run. */
export interface Images {
  readonly names: readonly string[];
  /** A JPEG of about `megapixels`, 4:3, from the image of that name (default: the first one). */
  jpeg(megapixels: number, name?: string): Promise<Buffer>;
}

/** A drawn person with hair, folds and a busy ground, so that only the scene is simpler than in a photograph. */
function drawing(): string {
  const at = (seed: number) => {
    const value = Math.sin(seed * 12.9898) * 43758.5453;
    return value - Math.floor(value);
  };
  const ground = Array.from({ length: 160 }, (_, i) => {
    const fill = `hsl(${Math.round(80 + 60 * at(i))},${Math.round(20 + 30 * at(i + 300))}%,${Math.round(25 + 40 * at(i + 600))}%)`;
    return `<circle cx="${(400 * at(i + 1000)).toFixed(1)}" cy="${(230 * at(i + 2000)).toFixed(1)}" r="${(4 + 22 * at(i + 3000)).toFixed(1)}" fill="${fill}" opacity=".55"/>`;
  });
  const hair = Array.from({ length: 240 }, (_, i) => {
    const angle = Math.PI * (1.02 + 0.96 * at(i + 4000));
    const reach = 62 + 22 * at(i + 5000);
    const x = 200 + 50 * Math.cos(angle);
    const y = 108 + 58 * Math.sin(angle);
    const bend = 14 * (at(i + 6000) - 0.5);
    return `<path d="M${x.toFixed(1)} ${y.toFixed(1)}q${bend.toFixed(1)} -8 ${((reach - 50) * Math.cos(angle) + bend).toFixed(1)} ${((reach - 58) * Math.sin(angle)).toFixed(1)}" stroke-width="${(0.3 + at(i + 7000)).toFixed(2)}"/>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300">
    <defs><linearGradient id="s" x2="1"><stop stop-color="#c98f6d"/><stop offset="1" stop-color="#eec3a1"/></linearGradient>
    <radialGradient id="c"><stop stop-color="#c2483a"/><stop offset="1" stop-color="#7d241c"/></radialGradient></defs>
    <rect width="400" height="300" fill="#7a8f6b"/>${ground.join('')}<rect y="225" width="400" height="75" fill="#5d5348"/>
    <ellipse cx="200" cy="262" rx="108" ry="92" fill="url(#c)"/><rect x="178" y="150" width="44" height="44" fill="#c98f6d"/>
    <ellipse cx="200" cy="118" rx="50" ry="62" fill="url(#s)"/>
    <path d="M148 118q-8 -74 52 -76q60 0 53 78q-8 -44 -52 -46q-42 0 -53 44" fill="#3b2416"/>
    <g stroke="#3b2416" fill="none" stroke-linecap="round">${hair.join('')}</g></svg>`;
}

/** Deterministic camera grain: without it an enlarged image is much easier to encode than a real one. */
function addGrain(pixels: Buffer, width: number, height: number, strength: number): void {
  let state = 1;
  for (let i = 0, at = 0; i < width * height; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    const grain = strength * ((state >> 8) / 2 ** 23);
    for (let c = 0; c < 3; c++, at++)
      pixels[at] = Math.max(0, Math.min(255, Math.round((pixels[at] ?? 0) + grain)));
  }
}

const GRAIN = 6;

async function jpegOf(source: string | undefined, megapixels: number): Promise<Buffer> {
  const width = Math.round(Math.sqrt((megapixels * 1e6 * 4) / 3));
  const height = Math.floor((megapixels * 1e6) / width);
  const image =
    source === undefined
      ? sharp(Buffer.from(drawing()), { density: (72 * width) / 400, limitInputPixels: false })
      : sharp(source).rotate();
  const { width: w = 0, height: h = 0 } =
    source === undefined ? { width: 0, height: 0 } : await sharp(source).metadata();
  const pixels = await image
    .resize(width, height, { fit: 'cover' })
    .removeAlpha()
    .toColourspace('srgb')
    .raw()
    .toBuffer();
  if (w * h < width * height) addGrain(pixels, width, height, GRAIN);
  return sharp(pixels, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 90 })
    .toBuffer();
}

const IMAGE = /\.(jpe?g|png|webp|tiff?)$/i;

function filesIn(paths: readonly string[]): readonly string[] {
  const files = paths.flatMap((one) =>
    statSync(one).isDirectory()
      ? readdirSync(one)
          .filter((name) => IMAGE.test(name))
          .sort()
          .map((name) => path.join(one, name))
      : [one],
  );
  if (files.length === 0) throw new Error(`there are no images in ${paths.join(', ')}`);
  return files;
}

/** Photographs from files and folders, or a generated image without any. Larger sizes are enlarged, with grain. */
export function openImages(images?: readonly string[]): Images {
  const sources = new Map<string, string | undefined>(
    images ? filesIn(images).map((file) => [path.parse(file).name, file]) : [['drawn', undefined]],
  );
  const names = [...sources.keys()];
  return {
    names,
    jpeg: (megapixels, name = names[0] ?? '') => {
      if (!sources.has(name)) throw new Error(`there is no image named ${name}`);
      return jpegOf(sources.get(name), megapixels);
    },
  };
}

/** A generated JPEG of about `megapixels`. */
export const drawnJpeg = (megapixels: number): Promise<Buffer> => jpegOf(undefined, megapixels);
