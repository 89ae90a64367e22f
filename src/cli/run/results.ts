import { link, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from '../../folder.ts';
import { exists } from '../../models/files.ts';

/** A file to be cut out. */
export interface Input {
  readonly file: string;
  /** Path of the result below the output folder, relative to the given folder, without extension. */
  readonly stem: string;
}

export const runFormats = ['auto', 'png', 'jpg', 'webp', 'zip'] as const;
export type RunFormat = (typeof runFormats)[number];

/** Added to the name of an input for a result beside it. */
const resultSuffix = '-cutout';

/** Extensions that results of a format can have: `auto` is JPG where no pixel is transparent. */
const extensions: Readonly<Record<RunFormat, readonly string[]>> = {
  auto: ['.png', '.jpg'],
  png: ['.png'],
  jpg: ['.jpg'],
  webp: ['.webp'],
  zip: ['.zip'],
};

const extensionOfType: Readonly<Record<string, string>> = {
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/webp': '.webp',
  'application/zip': '.zip',
};

/** Undefined for a type that is no result. */
export const extensionOf = (contentType: string): string | undefined => extensionOfType[contentType];

/**
 * Absolute path of the result without its extension: `photo.jpg` becomes `photo-cutout` beside it, or `photo` in
 * the output folder.
 */
export const resultStem = ({ file, stem }: Input, out: string | undefined): string =>
  path.resolve(
    out === undefined
      ? path.join(path.dirname(file), `${path.basename(stem)}${resultSuffix}`)
      : path.join(out, stem),
  );

/** Paths that the result may get. */
const resultFiles = (stem: string, format: RunFormat): string[] =>
  extensions[format].map((extension) => `${stem}${extension}`);

/** The result that exists already; an input at its path is none. */
export async function existingResult(
  stem: string,
  format: RunFormat,
  inputs: ReadonlySet<string>,
): Promise<string | undefined> {
  for (const file of resultFiles(stem, format)) if (!inputs.has(file) && (await exists(file))) return file;
  return undefined;
}

/** Gives a complete file its name, which must be free. Rejects with EEXIST if it is not. */
async function placeNew(temporary: string, file: string): Promise<void> {
  try {
    await link(temporary, file);
  } catch (error) {
    // File systems without hard links, for example FAT and some network mounts.
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP') throw error;
    if (await exists(file)) throw Object.assign(new Error('The file exists.'), { code: 'EEXIST' });
    await rename(temporary, file);
  }
}

/**
 * Writes a result, which appears under its name only when it is complete. Rejects with EEXIST for a file that
 * exists, unless `overwrite` is set.
 */
export async function writeResult(file: string, bytes: Uint8Array, overwrite: boolean): Promise<void> {
  const folder = path.dirname(file);
  makeFolder('output folder', folder);
  const temporary = path.join(folder, `.${path.basename(file)}.${process.pid}.part`);
  try {
    const handle = await open(temporary, 'w');
    try {
      await handle.writeFile(bytes);
    } finally {
      await handle.close();
    }
    if (overwrite) await rename(temporary, file);
    else await placeNew(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}
