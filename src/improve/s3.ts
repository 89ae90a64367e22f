import { S3mini } from 's3mini';
import { type Bucket, checkName } from './bucket.ts';

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
