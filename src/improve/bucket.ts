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
