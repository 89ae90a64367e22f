import sharp, { type Sharp, type SharpOptions } from 'sharp';
import type { Dimensions } from './types.ts';

/** Opens a file of this header, whose pixels sharp turns and mirrors until they are upright. HEIC and AVIF are decoded upright. */
export const openUpright = (file: Uint8Array, { width, height }: Dimensions, options: SharpOptions): Sharp =>
  sharp(file, { ...options, limitInputPixels: width * height, autoOrient: true });
