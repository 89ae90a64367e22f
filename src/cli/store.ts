import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { Command } from 'commander';
import { formatCredits, quarters } from '../billing/price.ts';
import { messageOf } from '../errors.ts';
import type { Lock } from '../lock.ts';
import { copyDatabase, type Sums } from '../store/copy.ts';
import type { Database } from '../store/database.ts';
import { StoreError } from '../store/error.ts';
import { migrate } from '../store/migrate.ts';
import { openDatabase, openStore, type StoreOptions } from '../store/open.ts';
import { lockFolder, openSqlite } from '../store/sqlite.ts';
import { using } from './listing.ts';

const describe = ({ accounts, entries, balance }: Sums) =>
  `${accounts} accounts, ${entries} entries, ${formatCredits(quarters(balance))} credits`;

/** Writes a snapshot of the database to a file, atomically. */
async function backup(file: string, options: StoreOptions): Promise<Sums> {
  if (existsSync(file)) throw new StoreError('STORE_FILE', `${file} already exists.`);
  const folder = path.dirname(path.resolve(file));
  if (!existsSync(folder)) throw new StoreError('STORE_FILE', `The folder ${folder} does not exist.`);
  const part = `${file}.part`;
  const clean = () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${part}${suffix}`, { force: true });
  };
  clean();
  try {
    const sums = await using(openStore(options), (database) =>
      using(Promise.resolve(openSqlite(part)), async (copy) => {
        await migrate(copy);
        return copyDatabase(database, copy);
      }),
    );
    // Converts the file to one that reading does not modify.
    const done = new Sqlite(part);
    done.pragma('journal_mode = DELETE');
    done.close();
    renameSync(part, file);
    return sums;
  } finally {
    clean();
  }
}

/** Reads a copy of a database file, possibly of an older program; the file itself is only read. */
async function readCopy<T>(file: string, work: (copy: Database) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-restore-'));
  const copy = path.join(folder, 'books.db');
  try {
    try {
      const source = new Sqlite(file, { readonly: true, fileMustExist: true });
      await source.backup(copy);
      source.close();
      chmodSync(copy, 0o600);
    } catch (error) {
      const message = `${file} cannot be read as a database of Cutout: ${messageOf(error)}.`;
      throw new StoreError('STORE_FILE', message, { cause: error });
    }
    return await using(openStore({ dataDir: folder }), work);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Fills an empty database from a backup, or from the database of another installation. */
async function restore(file: string, options: StoreOptions): Promise<Sums> {
  const { dataDir, databaseUrl } = options;
  const folder = path.dirname(path.resolve(file));
  const locks: Lock[] = [];
  try {
    // Prevents writes to the source, and to the database being filled, while data is moved.
    if (path.basename(file) === 'books.db' && existsSync(path.join(folder, 'server.lock')))
      locks.push(lockFolder(folder));
    if (databaseUrl === undefined) locks.push(lockFolder(dataDir));
    return await readCopy(file, (copy) =>
      using(openStore(options), (database) => copyDatabase(copy, database)),
    );
  } finally {
    for (const lock of locks) lock.release();
  }
}

/** `cutout migrate | backup | restore`: the database as a whole. Actions reject with StoreError. */
export function storeCommands(options: StoreOptions, out: { write(text: string): unknown }): Command[] {
  return [
    new Command('migrate').description('migrate the schema of the database, as every start does').action(() =>
      using(openDatabase(options), async (database) => {
        const { from, to } = await migrate(database);
        const now = `The schema of ${database.name} is at version ${to}`;
        out.write(from === to ? `${now}; it was up to date.\n` : `${now}; it was at ${from}.\n`);
      }),
    ),
    new Command('backup')
      .description('write accounts and ledger to a file; the server may be running')
      .argument('<file>', 'file to create')
      .action(async (file: string) => {
        out.write(`${describe(await backup(file, options))} are in ${file}.\n`);
      }),
    new Command('restore')
      .description('fill an empty database from a backup, or from the books.db of another installation')
      .argument('<file>', 'file to read; it is not changed')
      .action(async (file: string) => {
        out.write(`${describe(await restore(file, options))} were restored, and agree with ${file}.\n`);
      }),
  ];
}
