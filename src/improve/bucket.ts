/**
 * Where the bytes of images handed in are kept. Names are relative paths of letters, digits, '-', '.', '/'.
 * test/improve/bucket.test.ts is what every implementation must pass.
 */
export interface Bucket {
  /** Whole or not at all; replaces what has the name. */
  put(name: string, bytes: Uint8Array, type: string): Promise<void>;
  get(name: string): Promise<Buffer | undefined>;
  /** A name that is not there is no error. */
  delete(name: string): Promise<void>;
}

/** Throws RangeError for a name that could lead out of the bucket. */
export function checkName(name: string): string {
  if (!/^[A-Za-z0-9-]+(\/[A-Za-z0-9-]+)*\.[a-z0-9]+$/.test(name)) throw new RangeError(`Not a name: ${name}`);
  return name;
}
