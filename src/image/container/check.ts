import type { InputFormat } from '../types.ts';
import { checkJpeg } from './jpeg.ts';
import { neededChunks } from './png.ts';
import { checkWebp } from './webp.ts';

/** Rejects with ImageError `failed_to_read_image` for a file of too many parts, before any decoder sees it. */
export async function checkParts(file: Uint8Array, format: InputFormat): Promise<void> {
  if (format === 'jpeg') await checkJpeg(file);
  else if (format === 'webp') checkWebp(file);
}

/** The bytes given to decoders: the file itself, or a PNG without its superfluous chunks. */
export const forDecoder = (file: Uint8Array, format: InputFormat): Uint8Array =>
  format === 'png' ? neededChunks(file) : file;
