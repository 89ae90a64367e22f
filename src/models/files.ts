import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { UNFINISHED } from './layout.ts';

export interface Written {
  readonly bytes: number;
  readonly sha256: string;
}

/** Length and SHA-256 of a file, read once. Rejects with ENOENT if it does not exist. */
export async function digestFile(file: string, signal?: AbortSignal): Promise<Written> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20, ...(signal && { signal }) })) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** Syncs a folder, so that a rename in it survives a power failure. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Moves a complete file to its final name: its contents are synced before the rename. */
export async function place(temporary: string, file: string): Promise<void> {
  const handle = await open(temporary, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  await syncFolder(path.dirname(file));
}

/**
 * Writes a file that appears under its name only when it is complete; a failure leaves nothing behind. The
 * folder must exist.
 */
export async function writeAtomically(
  file: string,
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<Written> {
  const temporary = path.join(path.dirname(file), `${UNFINISHED}${path.basename(file)}.${process.pid}`);
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    const handle = await open(temporary, 'w');
    try {
      for await (const chunk of chunks) {
        hash.update(chunk);
        bytes += chunk.length;
        await handle.writeFile(chunk);
      }
    } finally {
      await handle.close();
    }
    await place(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  return { bytes, sha256: hash.digest('hex') };
}

export async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
