import { readFile, stat } from 'node:fs/promises';
import { UserError } from '../../errors.ts';
import { codeOf } from '../../files.ts';

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
