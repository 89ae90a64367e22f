import path from 'node:path';
import { UserError } from '../../errors.ts';
import { exists, writeAtomically, writeFault } from '../../files.ts';
import { makeFolder } from '../../folder.ts';
import { formats } from '../../image/encode.ts';
import { sniff } from '../../image/sniff.ts';
import { shown } from '../service.ts';

/** A file to be cut out. */
export interface Input {
  readonly file: string;
  /** Path of the result below the output folder, relative to the given folder, without extension. */
  readonly stem: string;
}

/** A failure that every other image would have too: the run ends. */
export class RunError extends UserError {}

export const runFormats = ['auto', 'png', 'jpg', 'webp', 'avif', 'zip'] as const;
export type RunFormat = (typeof runFormats)[number];

/** Added to the name of an input for a result beside it. */
const resultSuffix = '-cutout';

/** Extensions that results of a format can have, the usual one first: `auto` is JPG where no pixel is transparent. */
const extensionsFor = (format: RunFormat): readonly string[] =>
  format === 'auto' ? ['.png', '.jpg'] : [`.${format}`];

/** The extension of a result. Throws RunError for what is none. */
export function extensionOf(contentType: string, bytes: Uint8Array): string {
  const format = formats.get(contentType);
  if (format === undefined)
    throw new RunError(`The server answered with ${shown(contentType) || 'no type'} instead of an image.`);
  if (sniff(bytes) !== (format === 'jpg' ? 'jpeg' : format))
    throw new RunError('The server answered with something that is no image.');
  return `.${format}`;
}

export const withoutExtension = (file: string): string =>
  path.join(path.dirname(file), path.basename(file, path.extname(file)));

export const stemOf = ({ file }: Input): string => path.resolve(withoutExtension(file));

/** Absolute, without extension: `photo.jpg` becomes `photo-cutout` beside it, or `photo` in the output folder. */
export const resultStem = ({ file, stem }: Input, out: string | undefined): string =>
  path.resolve(
    out === undefined
      ? path.join(path.dirname(file), `${path.basename(stem)}${resultSuffix}`)
      : path.join(out, stem),
  );

/** The path that the result gets; `auto` may change the extension. */
export const usualResult = (stem: string, format: RunFormat): string => `${stem}${extensionsFor(format)[0]}`;

/** The result that exists already; an input at its path is none. */
export async function existingResult(
  stem: string,
  format: RunFormat,
  inputs: ReadonlySet<string>,
): Promise<string | undefined> {
  const files = extensionsFor(format).map((extension) => `${stem}${extension}`);
  for (const file of files) if (!inputs.has(file) && (await exists(file))) return file;
  return undefined;
}

/**
 * Writes a result, which appears under its name only when it is complete. Rejects with EEXIST for a file that
 * exists, unless `overwrite` is set; with RunError if other results could not be written either.
 */
export async function writeResult(file: string, bytes: Uint8Array, overwrite: boolean): Promise<void> {
  try {
    makeFolder('output folder', path.dirname(file));
    await writeAtomically(file, bytes, overwrite ? 'replace' : 'new');
  } catch (error) {
    if (error instanceof UserError) throw new RunError(error.message, { cause: error });
    const fault = writeFault(error);
    if (fault === undefined) throw error;
    throw new RunError(`The result ${file} cannot be written: ${fault}.`, { cause: error });
  }
}
