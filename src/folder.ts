import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { UserError } from './errors.ts';

const isFolder = (place: string): boolean =>
  statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * One folder at a time: Node.js's recursive mkdir never returns where a parent exists and refuses new entries with
 * ENOENT, as /proc does.
 */
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

/**
 * Makes a folder and its missing parents, each with `mode`. Nothing changes if it exists. `what` names its purpose in
 * the message: 'data folder'. Throws UserError if it cannot be made.
 */
export function makeFolder(what: string, folder: string, mode = 0o777): void {
  try {
    make(path.resolve(folder), mode);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UserError(`The ${what} ${folder} cannot be created: ${reason}.`, { cause: error });
  }
}
