import { constants, type Stats } from 'node:fs';
import { access, lstat, readFile, stat } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { UserError } from '../../errors.ts';
import { codeOf } from '../../files.ts';
import { maxFileBytes } from '../../inputLimits.ts';
import { reasonOf } from './report.ts';

const mebibyte = 1024 ** 2;

/** Whether nothing exists at a path, by the error of looking there. */
const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '');

/** Node.js reads a name that is not valid UTF-8 with U+FFFD in it, and finds no file under what it read. */
export const maybeNotUtf8 = (file: string): boolean => file.includes('\uFFFD');

/** The error for a path at which `stat` failed: UserError where more can be said than that nothing is there. */
async function missingError(file: string, error: unknown): Promise<unknown> {
  if (!isMissing(error)) return error;
  const link = await lstat(file).catch(() => undefined);
  if (link) return new UserError('It is a link whose target does not exist.');
  return maybeNotUtf8(file) ? new UserError('Its name is not valid UTF-8; rename it.') : error;
}

/** Rejects with UserError for anything but a regular file, of which nothing is opened. */
export async function checkInput(file: string): Promise<Stats> {
  const found = await stat(file).catch(async (error: unknown) => {
    throw await missingError(file, error);
  });
  if (found.isDirectory())
    await access(file, constants.R_OK | constants.X_OK).catch(() => {
      throw new UserError('It is a folder that cannot be read.');
    });
  if (!found.isFile()) throw new UserError('It is not a regular file.');
  return found;
}

/** Reads a regular file of at most `maxBytes`. Rejects with UserError for any other, before it is opened. */
export async function readInput(file: string, maxBytes: number): Promise<Buffer> {
  const found = await checkInput(file);
  if (found.size > maxBytes) throw tooLarge(maxBytes);
  return readFile(file);
}

/** The error for a file that an option names and that cannot be used. */
export function unreadable(what: string, file: string, error: unknown): UserError {
  const reason = isMissing(error) ? 'There is no such file.' : reasonOf(error);
  return new UserError(`The ${what} ${file} cannot be read: ${reason}`, { cause: error });
}

/** Reads an image that an option names. Rejects with UserError, which says why that cannot be. */
export const readNamed = (what: string, file: string): Promise<Buffer> =>
  readInput(file, maxFileBytes).catch((error: unknown) => {
    throw unreadable(what, file, error);
  });

const tooLarge = (maxBytes: number) =>
  new UserError(`File too large: File exceeds limit of ${maxBytes / mebibyte}MB`);

/** A stream of at most `maxBytes`. Throws UserError for a longer one, and soon the reason of an aborted `signal`. */
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
