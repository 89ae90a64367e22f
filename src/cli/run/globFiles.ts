import type { Dirent, readdir as listFolder } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { FileSystemAdapter } from 'tinyglobby';

/** Whether `glob` leaves an entry out: it is neither a file nor a folder, or a link to nothing. */
async function isLeftOut(entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return !entry.isFile() && !entry.isDirectory();
  return stat(path.join(entry.parentPath, entry.name)).then(
    () => false,
    () => true,
  );
}

/** What `glob` would leave out is listed as a file: it is a failed input, and not passed over in silence. */
async function entriesOf(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries) if (await isLeftOut(entry)) entry.isFile = () => true;
  return entries;
}

/** The file system as `glob` sees it; `unread` is called for every folder that cannot be read, and `glob` goes on. */
export function globFiles(unread: (folder: string) => void): FileSystemAdapter {
  const readdirOfGlob = (
    folder: string,
    _: { withFileTypes: true },
    done: (error: NodeJS.ErrnoException | null, entries: Dirent[]) => void,
  ): void => {
    entriesOf(folder).then(
      (entries) => done(null, entries),
      () => {
        unread(folder);
        done(null, []);
      },
    );
  };
  return { readdir: readdirOfGlob as typeof listFolder };
}
