import { randomBytes } from 'node:crypto';
import { access, link, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';

export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

/** Faults of writing that the next file in the folder would have too. */
const writeFaults: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'files of this size are not allowed',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of its path is not a folder',
  EROFS: 'the file system is read-only',
};

/** Why nothing can be written in the folder, as the error or its cause says; undefined for any other error. */
export const writeFault = (error: unknown): string | undefined =>
  writeFaults[codeOf(error) ?? ''] ??
  (error instanceof Error && error.cause ? writeFault(error.cause) : undefined);

/** Why a file could not be written, as the end of a sentence. */
export const reasonToWrite = (error: unknown): string =>
  writeFault(error) ?? (error instanceof Error ? error.message : String(error));

export async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/** Short, so that a file whose name has the greatest length can be written. */
const temporaryIn = (folder: string, prefix = '.'): string =>
  path.join(folder, `${prefix}${randomBytes(8).toString('hex')}.part`);

/** Rejects if no file can be created in the folder. */
export async function checkWritable(folder: string): Promise<void> {
  const temporary = temporaryIn(folder);
  const handle = await open(temporary, 'wx');
  await handle.close();
  await rm(temporary);
}

/** Syncs a file, or a folder, so that a rename in it survives a power failure. */
async function sync(place: string, flags: 'r' | 'r+'): Promise<void> {
  const handle = await open(place, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Gives a complete file its final name, in place of any other one; the file survives a power failure. */
export async function place(temporary: string, file: string): Promise<void> {
  await sync(temporary, 'r+');
  await rename(temporary, file);
  await sync(path.dirname(file), 'r');
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

/** What happens to a file of the same name; a `durable` one survives a power failure. */
type Placement = 'new' | 'replace' | 'replaceDurably';

const placements: Readonly<Record<Placement, (temporary: string, file: string) => Promise<void>>> = {
  new: placeNew,
  replace: rename,
  replaceDurably: place,
};

/**
 * Writes a file, which appears under its name only when it is complete; a failure leaves nothing behind. The folder
 * must exist. Rejects with EEXIST for a `new` file whose name is taken.
 * @param prefix start of the temporary file's name
 */
export async function writeAtomically(
  file: string,
  content: Uint8Array | string | AsyncIterable<Uint8Array>,
  placement: Placement,
  { prefix, mode }: { readonly prefix?: string; readonly mode?: number } = {},
): Promise<void> {
  const temporary = temporaryIn(path.dirname(file), prefix);
  const handle = await open(temporary, 'wx', mode);
  try {
    try {
      await handle.writeFile(content);
    } finally {
      await handle.close();
    }
    await placements[placement](temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}
