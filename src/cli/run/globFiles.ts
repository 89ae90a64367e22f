import { isUtf8 } from 'node:buffer';
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

/**
 * The name of an entry as a string. Node.js reads every byte that is not valid UTF-8 as U+FFFD, so that the names of
 * several files become one: such a file gets a name of its own, with the bytes, under which nothing exists.
 */
function nameOf(entry: Dirent<Buffer>): string {
  const read = entry.name.toString();
  if (isUtf8(entry.name) || entry.isDirectory()) return read;
  const { name, ext } = path.parse(read);
  return `${name} (${Buffer.from(entry.name.filter((byte) => byte > 127)).toString('hex')})${ext}`;
}

/** What `glob` would leave out is listed as a file: it is a failed input, and not passed over in silence. */
async function entriesOf(folder: string): Promise<Dirent[]> {
  const found = await readdir(folder, { withFileTypes: true, encoding: 'buffer' });
  const entries = found.map((entry) => Object.assign(entry, { name: nameOf(entry) }));
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
