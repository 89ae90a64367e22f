import { readFile, stat } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { UserError } from '../../errors.ts';

const MEBIBYTE = 1024 ** 2;

/** Reads a regular file of at most `maxBytes`. Rejects with UserError for any other, before it is opened. */
export async function readInput(file: string, maxBytes: number): Promise<Buffer> {
  const found = await stat(file);
  if (!found.isFile()) throw new UserError('It is not a regular file.');
  if (found.size > maxBytes) throw tooLarge(maxBytes);
  return readFile(file);
}

const tooLarge = (maxBytes: number) =>
  new UserError(`File too large: File exceeds limit of ${maxBytes / MEBIBYTE}MB`);

/**
 * Reads a stream of at most `maxBytes`. Rejects with UserError for a longer one, of which no more is read; soon after
 * an abort with the reason of `signal`.
 */
export async function readStream(stream: Readable, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    // Leaving the loop closes the stream.
    for await (const part of addAbortSignal(signal, stream) as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > maxBytes) throw tooLarge(maxBytes);
      parts.push(part);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  return Buffer.concat(parts);
}
