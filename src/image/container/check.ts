import type { InputFormat } from '../types.ts';
import { checkGif } from './gif.ts';
import { checkHeif } from './heif.ts';
import { checkJpeg } from './jpeg.ts';
import { neededChunks } from './png.ts';
import { statedColour } from './pngColour.ts';
import { checkTiff } from './tiff.ts';
import { checkWebp } from './webp.ts';

type Check = (file: Uint8Array) => void | Promise<void>;

const checks: Readonly<Record<InputFormat, Check>> = {
  jpeg: checkJpeg,
  // Counted by `neededChunks`.
  png: () => {},
  webp: checkWebp,
  avif: checkHeif,
  heic: checkHeif,
  tiff: checkTiff,
  gif: checkGif,
};

/** Rejects with ImageError `failed_to_read_image` for a file of too many parts, before any decoder sees it. */
export async function checkParts(file: Uint8Array, format: InputFormat): Promise<void> {
  await checks[format](file);
}

/** For decoders: the file, or a PNG without spare chunks, whose chunks about colours have become a profile. */
export const forDecoder = (file: Uint8Array, format: InputFormat): Uint8Array =>
  format === 'png' ? statedColour(neededChunks(file)).bytes : file;

/** Whether the profile in what decoders are given is made from other chunks: colours are then converted to sRGB. */
export const statesColour = (file: Uint8Array, format: InputFormat): boolean =>
  format === 'png' && statedColour(file).converts;
