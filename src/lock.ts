import Sqlite from 'better-sqlite3';

/** A lock of the operating system, which ends with its process, however that ends. */
export interface Lock {
  release(): void;
}

/**
 * Takes the lock `file`, which is made where it is missing and stays; undefined while it is held, by this process or
 * another. Throws SqliteError where a file cannot be locked.
 */
export function tryLock(file: string): Lock | undefined {
  const lock = new Sqlite(file, { timeout: 0 });
  try {
    // No file for a journal: nothing is written.
    lock.pragma('journal_mode = MEMORY');
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) return undefined;
    throw error;
  }
  return { release: () => lock.close() };
}
