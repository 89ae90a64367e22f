import type { InputFormat } from '../types.ts';
import { checkJpeg } from './jpeg.ts';
import { neededChunks } from './png.ts';
import { checkWebp } from './webp.ts';

/** Throws ImageError `failed_to_read_image` for a file of absurdly many parts, before any decoder sees it. */
export async function checkParts(file: Uint8Array, format: InputFormat): Promise<void> {
  if (format === 'jpeg') await checkJpeg(file);
  else if (format === 'webp') checkWebp(file);
}

/** What of a file decoders are given: the same bytes, or of a PNG of many needless chunks those that are needed. */
export const forDecoder = (file: Uint8Array, format: InputFormat): Uint8Array =>
  format === 'png' ? neededChunks(file) : file;
