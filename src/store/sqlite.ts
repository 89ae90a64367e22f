import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { StoreError } from './error.ts';
import { migrate } from './migrate.ts';

export type Database = Sqlite.Database;
export type Statement<Parameters extends unknown[], Row = unknown> = Sqlite.Statement<Parameters, Row>;

export interface SqliteOptions {
  readonly file: string;
  /** The compiled better_sqlite3.node; set-up puts it into build/sqlite. */
  readonly nativeBinding: string;
}

/** Another process may hold the write lock for the length of an operator's command. */
const busyMilliseconds = 5000;

/**
 * Opens (or makes) the database, readable by its owner only, and brings its schema up to date.
 *
 * WAL with synchronous=FULL: a commit that returned survives `kill -9` (NORMAL would too) and a power cut
 * (NORMAL would not). docs/decisions/0055 has the cost.
 */
export function openSqlite(options: SqliteOptions): Database {
  const { file, nativeBinding } = options;
  let database: Database | undefined;
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    // Made before SQLite opens it, so that it is at no moment readable by others; -wal and -shm get its mode.
    closeSync(openSync(file, 'a', 0o600));
    chmodSync(file, 0o600);
    database = new Sqlite(file, { nativeBinding, timeout: busyMilliseconds });
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = FULL');
    database.pragma('foreign_keys = ON');
    database.pragma('trusted_schema = OFF');
    migrate(database);
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof StoreError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new StoreError('STORE_OPEN', `The database ${file} cannot be opened: ${reason}.`, { cause: error });
  }
}

export interface FolderLock {
  release(): void;
}

/**
 * Makes this process the only server on a data folder until `release` or its end, however it ends: the lock
 * is the operating system's. Only therefore may a start release every reservation it finds.
 */
export function lockFolder(folder: string, nativeBinding: string): FolderLock {
  const file = path.join(folder, 'server.lock');
  let lock: Database | undefined;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    lock = new Sqlite(file, { nativeBinding, timeout: 0 });
    chmodSync(file, 0o600);
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock?.close();
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) {
      const message = `Another server already uses the data folder ${folder}; stop it or choose another folder.`;
      throw new StoreError('STORE_IN_USE', message, { cause: error });
    }
    const reason = error instanceof Error ? error.message : String(error);
    throw new StoreError('STORE_OPEN', `The data folder ${folder} cannot be locked: ${reason}.`, {
      cause: error,
    });
  }
  const held = lock;
  return { release: () => held.close() };
}
