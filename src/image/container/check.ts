import type { InputFormat } from '../types.ts';
import { checkGif } from './gif.ts';
import { checkHeif } from './heif.ts';
import { checkJpeg } from './jpeg.ts';
import { neededChunks } from './png.ts';
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
  // A bare code stream has no boxes.
  jxl: (file) => (file[0] === 0xff ? undefined : checkHeif(file)),
};

/** Rejects with ImageError `failed_to_read_image` for a file of too many parts, before any decoder sees it. */
export async function checkParts(file: Uint8Array, format: InputFormat): Promise<void> {
  await checks[format](file);
}

/** The bytes given to decoders: the file itself, or a PNG without its superfluous chunks. */
export const forDecoder = (file: Uint8Array, format: InputFormat): Uint8Array =>
  format === 'png' ? neededChunks(file) : file;
