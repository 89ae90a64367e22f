import { accessSync, constants, mkdirSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { messageOf, UserError } from './errors.ts';

const isFolder = (place: string): boolean =>
  statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** One by one: the recursive mkdir never returns where a parent refuses new entries with ENOENT, as /proc does. */
function make(place: string, mode: number): void {
  if (isFolder(place)) return;
  const parent = path.dirname(place);
  if (parent !== place) make(parent, mode);
  try {
    mkdirSync(place, { mode });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isFolder(place)) throw error;
  }
}

/** The deepest part of a path that this process can look at. */
function reachable(place: string): { readonly place: string; readonly stats: Stats } | undefined {
  try {
    const stats = statSync(place, { throwIfNoEntry: false });
    if (stats) return { place, stats };
  } catch {
    // A folder above may not be searched.
  }
  const parent = path.dirname(place);
  return parent === place ? undefined : reachable(parent);
}

const refusals: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'EROFS']);

/** Whose the file or folder is that this process may not read or write, and what to do; undefined for other errors. */
export function accessSentence(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, path: place, syscall } = error as NodeJS.ErrnoException;
  if (!refusals.has(code) || place === undefined) return undefined;
  const found = reachable(path.resolve(place));
  if (!found) return undefined;
  if (code === 'EROFS') return `${found.place} is on a file system that is mounted read-only.`;
  if (syscall === 'chmod')
    return `${found.place} is on a file system that cannot keep a file from other users (FAT, exFAT, some network shares), and keys are stored in it. Choose a folder elsewhere.`;
  const user = process.getuid?.() ?? 0;
  const mode = (found.stats.mode & 0o7777).toString(8).padStart(4, '0');
  return `${found.place} belongs to user ${found.stats.uid} (mode ${mode}), and Cutout runs as user ${user}, who may not use it. Give it to that user (chown -R ${user} ${found.place}), or run Cutout as user ${found.stats.uid}.`;
}

/** Throws UserError unless this process may read, write and search an existing folder. */
export function assertUsable(what: string, folder: string): void {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const sentence = accessSentence(error);
    if (sentence === undefined) throw error;
    throw new UserError(`The ${what} cannot be used: ${sentence}`, { cause: error });
  }
}

/**
 * Makes a folder and its missing parents, each with `mode`. Nothing changes if it exists. `what` names its purpose in
 * the message: 'data folder'. Throws UserError if it cannot be made.
 */
export function makeFolder(what: string, folder: string, mode = 0o777): void {
  try {
    make(path.resolve(folder), mode);
  } catch (error) {
    const reason = accessSentence(error) ?? `${messageOf(error)}.`;
    throw new UserError(`The ${what} ${folder} cannot be created: ${reason}`, { cause: error });
  }
}
