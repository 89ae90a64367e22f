import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { writeAtomically } from '../files.ts';
import { UNFINISHED } from './layout.ts';

export interface Written {
  readonly bytes: number;
  readonly sha256: string;
}

/** Length and SHA-256 of the bytes that pass through `read`. */
class Digest {
  readonly #hash = createHash('sha256');
  #bytes = 0;

  async *read(chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.#hash.update(chunk);
      this.#bytes += chunk.length;
      yield chunk;
    }
  }

  end(): Written {
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }
}

/** Returns the length and SHA-256 of a file, read once. Rejects with ENOENT if it does not exist. */
export async function digestFile(file: string, signal?: AbortSignal): Promise<Written> {
  const digest = new Digest();
  const chunks = createReadStream(file, { highWaterMark: 1 << 20, ...(signal && { signal }) });
  for await (const _ of digest.read(chunks));
  return digest.end();
}

/**
 * Writes a file of a network's folder, which must exist: atomically and durably. What a killed process leaves there
 * is deleted by the next pull.
 */
export async function writeNetworkFile(
  file: string,
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<Written> {
  const digest = new Digest();
  await writeAtomically(file, digest.read(chunks), 'replaceDurably', { prefix: UNFINISHED });
  return digest.end();
}

/** File of a kept folder that says what the others are. */
export const RECORD = 'record.json';

/** Lengths of the other files of a kept folder, by their names. */
export async function lengthsIn(folder: string): Promise<Readonly<Record<string, number>>> {
  const names = (await readdir(folder)).filter((name) => name !== RECORD).sort();
  const lengths = names.map(async (name) => [name, (await stat(path.join(folder, name))).size] as const);
  return Object.fromEntries(await Promise.all(lengths));
}

/** A folder that is being filled. */
interface FolderDraft {
  readonly folder: string;
  /**
   * Adds `record` of its files and gives it its final name, in place of any other. If that fails, because the disk is full,
   * another process was faster or nothing is in it, nothing is left of it: what it caches is made again by the next start.
   */
  keep(record: (lengths: Readonly<Record<string, number>>) => object | Promise<object>): Promise<void>;
  discard(): Promise<void>;
}

/** Deletes a folder as far as that is possible. */
export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true }).catch(() => {});

/** A draft takes minutes at most: one this old was left by a process that died. */
const draftMs = 3_600_000;

/** Deletes the drafts of `final` that processes left which died. */
async function deleteOldDrafts(parent: string, prefix: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const draft = path.join(parent, name);
    if (name.startsWith(prefix) && (await stat(draft)).mtimeMs < Date.now() - draftMs)
      await removeFolder(draft);
  }
}

/** Returns a new folder that can become `final`; undefined if it cannot be made. Every draft must be kept or discarded. */
export async function draftFolder(final: string): Promise<FolderDraft | undefined> {
  const [parent, prefix] = [path.dirname(final), `${UNFINISHED}${path.basename(final)}.`];
  const folder = path.join(parent, `${prefix}${process.pid}`);
  const discard = () => removeFolder(folder);
  try {
    await deleteOldDrafts(parent, prefix);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder);
  } catch {
    return undefined;
  }
  const keep: FolderDraft['keep'] = async (record) => {
    try {
      const lengths = await lengthsIn(folder);
      if (Object.keys(lengths).length === 0) throw new RangeError('nothing was written');
      await writeFile(path.join(folder, RECORD), JSON.stringify(await record(lengths)));
      await rm(final, { recursive: true, force: true });
      await rename(folder, final);
    } catch {
      await discard();
    }
  };
  return { folder, keep, discard };
}
