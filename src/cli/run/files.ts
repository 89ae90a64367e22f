import { randomBytes } from 'node:crypto';
import { link, open, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { exists } from '../../models/files.ts';

/** The code of a system error. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

/** Faults of writing that the next file in the folder would have too. */
const writeFaults: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EDQUOT: 'the disk quota is used up',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of its path is not a folder',
  EROFS: 'the file system is read-only',
};

/** Why nothing can be written in the folder; undefined for any other error. */
export const writeFault = (error: unknown): string | undefined => writeFaults[codeOf(error) ?? ''];

/** Why a file could not be written, as the end of a sentence. */
export const reasonToWrite = (error: unknown): string =>
  writeFault(error) ?? (error instanceof Error ? error.message : String(error));

const MEBIBYTE = 1024 ** 2;

/** Reads a regular file of at most `maxBytes`. Rejects with UserError for any other, before it is opened. */
export async function readInput(file: string, maxBytes: number): Promise<Buffer> {
  const found = await stat(file);
  if (!found.isFile()) throw new UserError('It is not a regular file.');
  if (found.size > maxBytes)
    throw new UserError(`File too large: File exceeds limit of ${maxBytes / MEBIBYTE}MB`);
  return readFile(file);
}

/** Short, so that a file whose name has the greatest length can be written. */
const temporaryIn = (folder: string): string => path.join(folder, `.${randomBytes(8).toString('hex')}.part`);

/** Rejects if no file can be created in the folder. */
export async function checkWritable(folder: string): Promise<void> {
  const temporary = temporaryIn(folder);
  const handle = await open(temporary, 'wx');
  await handle.close();
  await rm(temporary);
}

/** Gives a complete file its name, which must be free. Rejects with EEXIST if it is not. */
async function placeNew(temporary: string, file: string): Promise<void> {
  try {
    await link(temporary, file);
  } catch (error) {
    // File systems without hard links, for example FAT and some network mounts.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(codeOf(error) ?? '')) throw error;
    if (await exists(file)) throw Object.assign(new Error('The file exists.'), { code: 'EEXIST' });
    await rename(temporary, file);
  }
}

/**
 * Writes a file, which appears under its name only when it is complete. Rejects with EEXIST for a file that
 * exists, unless `overwrite` is set.
 */
export async function writeComplete(
  file: string,
  content: Uint8Array | string,
  overwrite: boolean,
): Promise<void> {
  const temporary = temporaryIn(path.dirname(file));
  const handle = await open(temporary, 'wx');
  try {
    try {
      await handle.writeFile(content);
    } finally {
      await handle.close();
    }
    if (overwrite) await rename(temporary, file);
    else await placeNew(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}
