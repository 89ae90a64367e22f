import { readFile, stat } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { UserError } from '../../errors.ts';
import { codeOf } from '../../files.ts';

/** Faults of writing that the next file in the folder would have too. */
const writeFaults: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EDQUOT: 'the disk quota is used up',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of its path is not a folder',
  EROFS: 'the file system is read-only',
};

/** Why nothing can be written in the folder; undefined for any other error. */
export const writeFault = (error: unknown): string | undefined => writeFaults[codeOf(error) ?? ''];

/** Why a file could not be written, as the end of a sentence. */
export const reasonToWrite = (error: unknown): string =>
  writeFault(error) ?? (error instanceof Error ? error.message : String(error));

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
