import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { writeAtomically } from '../files.ts';
import { makeFolder } from '../folder.ts';

/**
 * Object storage for images that customers hand in. Names are relative paths of letters, digits, '-', '.',
 * '/'. test/improve/bucket.test.ts specifies every implementation.
 */
export interface Bucket {
  /** Atomic; replaces an object of that name. */
  put(name: string, bytes: Uint8Array, type: string): Promise<void>;
  get(name: string): Promise<Buffer | undefined>;
  /** A missing object is not an error. */
  delete(name: string): Promise<void>;
}

/** Throws RangeError for a name that could lead out of the bucket. */
export function checkName(name: string): string {
  if (!/^[A-Za-z0-9-]+(\/[A-Za-z0-9-]+)*\.[a-z0-9]+$/.test(name)) throw new RangeError(`Not a name: ${name}`);
  return name;
}

/** A local folder as bucket, readable by its owner only. */
export function folderBucket(folder: string): Bucket {
  const place = (name: string) => path.join(folder, checkName(name));
  return {
    async put(name, bytes) {
      const file = place(name);
      makeFolder('folder of submitted images', path.dirname(file), 0o700);
      await writeAtomically(file, bytes, 'replaceDurably', { mode: 0o600 });
    },
    async get(name) {
      try {
        return await readFile(place(name));
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
        throw error;
      }
    },
    async delete(name) {
      await rm(place(name), { force: true });
    },
  };
}
