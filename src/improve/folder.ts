import { open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from '../folder.ts';
import { type Bucket, checkName } from './bucket.ts';

/** A local folder as bucket, readable by its owner only. */
export function folderBucket(folder: string): Bucket {
  const place = (name: string) => path.join(folder, checkName(name));
  return {
    async put(name, bytes) {
      const file = place(name);
      const part = `${file}.part`;
      makeFolder('folder of submitted images', path.dirname(file), 0o700);
      try {
        const handle = await open(part, 'w', 0o600);
        try {
          await handle.writeFile(bytes);
          await handle.sync();
        } finally {
          await handle.close();
        }
        await rename(part, file);
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      }
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
