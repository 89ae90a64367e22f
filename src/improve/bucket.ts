import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { S3mini } from 's3mini';
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
function checkName(name: string): string {
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

export interface S3Options {
  /** The address of the bucket, which is its path: https://s3.example.com/my-bucket. */
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Time limit of one transfer. */
const timeoutMilliseconds = 30_000;

/** A bucket of Amazon S3 or of any service with its protocol. */
export function s3Bucket(options: S3Options): Bucket {
  const client = new S3mini({ ...options, requestAbortTimeout: timeoutMilliseconds });
  return {
    async put(name, bytes, type) {
      await client.putObject(checkName(name), bytes, type);
    },
    async get(name) {
      const bytes = await client.getObjectArrayBuffer(checkName(name));
      return bytes === null ? undefined : Buffer.from(bytes);
    },
    async delete(name) {
      await client.deleteObject(checkName(name));
    },
  };
}
