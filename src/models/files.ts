import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
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
