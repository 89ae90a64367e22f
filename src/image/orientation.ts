import sharp, { type Metadata, type Sharp, type SharpOptions } from 'sharp';
import type { Dimensions, Probe } from './types.ts';

/** The EXIF orientation of a file, 1 to 8, and the size of its upright image; 1 for a file that states none. */
export const uprightOf = ({
  autoOrient: { width, height },
  orientation = 1,
}: Metadata): Pick<Probe, 'width' | 'height' | 'orientation'> => ({ width, height, orientation });

/** Opens a file of this header, whose pixels sharp turns and mirrors until they are upright. HEIC and AVIF are decoded upright. */
export const openUpright = (file: Uint8Array, { width, height }: Dimensions, options: SharpOptions): Sharp =>
  sharp(file, { ...options, limitInputPixels: width * height, autoOrient: true });
