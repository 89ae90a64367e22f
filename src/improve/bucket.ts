import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { S3mini, S3ServiceError } from 's3mini';
import { codeOf, writeAtomically } from '../files.ts';
import { makeFolder } from '../folder.ts';

/**
 * Object storage for images that customers hand in. Names are relative paths of letters, digits, '-', '.',
 * '/'. test/improve/bucket.test.ts specifies every implementation.
 */
export interface Bucket {
  /** Atomic; replaces an object of that name. */
  put(name: string, bytes: Uint8Array, type: string): Promise<void>;
  /** Bytes `from` to `to` (excluded) of an object, fewer at its end, by default all; undefined if there is no such object. */
  get(name: string, from?: number, to?: number): Promise<Buffer | undefined>;
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
    async get(name, from = 0, to = Number.POSITIVE_INFINITY) {
      const file = await open(place(name)).catch((error: unknown): undefined => {
        if (codeOf(error) !== 'ENOENT') throw error;
      });
      return file && buffer(file.createReadStream({ start: from, end: to - 1 }));
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
    async get(name, from = 0, to = Number.MAX_SAFE_INTEGER) {
      const answer = await client.getObjectRaw(checkName(name), false, from, to).catch((error: unknown) => {
        if (!(error instanceof S3ServiceError && error.status === 404)) throw error;
      });
      if (!answer) return undefined;
      const bytes = Buffer.from(await answer.arrayBuffer());
      // 206 is the range; a service without ranges sends the object.
      return answer.status === 206 ? bytes : bytes.subarray(from, to);
    },
    async delete(name) {
      await client.deleteObject(checkName(name));
    },
  };
}
