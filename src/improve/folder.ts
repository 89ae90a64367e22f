import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { writeAtomically } from '../files.ts';
import { makeFolder } from '../folder.ts';
import { type Bucket, checkName } from './bucket.ts';

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
