import sharp, { type Sharp } from 'sharp';
import { decode } from './decode.ts';
import { probe } from './probe.ts';
import type { Dimensions, ProbeLimits } from './types.ts';

/** A smaller copy of an image as WebP, with its alpha. */
export interface Thumbnail extends Dimensions {
  readonly bytes: Buffer;
}

async function shrink(image: Sharp, maxSide: number): Promise<Thumbnail> {
  const { data, info } = await image
    .resize({ width: maxSide, height: maxSide, fit: 'inside', withoutEnlargement: true })
    .webp({ quality: 80, alphaQuality: 100, effort: 2 })
    .toBuffer({ resolveWithObject: true });
  return { bytes: data, width: info.width, height: info.height };
}

/** Makes the thumbnail of a result that `encode` made, no side longer than `maxSide` pixels. */
export const resultThumbnail = (result: Uint8Array, maxSide: number): Promise<Thumbnail> =>
  shrink(sharp(result), maxSide);

/** Makes the thumbnail of an input, upright, no side longer than `maxSide` pixels. Rejects as `probe` and `decode` do. */
export async function inputThumbnail(
  input: Uint8Array,
  limits: ProbeLimits,
  maxSide: number,
): Promise<Thumbnail> {
  const header = await probe(input, limits);
  const scale = Math.min(1, maxSide / Math.max(header.width, header.height));
  const width = Math.max(1, Math.round(header.width * scale));
  const height = Math.max(1, Math.round(header.height * scale));
  const { data, ...size } = await decode(input, header, { width, height });
  return shrink(sharp(data, { raw: { width: size.width, height: size.height, channels: 4 } }), maxSide);
}
