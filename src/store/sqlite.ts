import fs, { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import Sqlite from 'better-sqlite3';
import { messageOf } from '../errors.ts';
import { accessSentence, assertUsable, makeFolder } from '../folder.ts';
import { type Lock, tryLock } from '../lock.ts';
import type { Database, Dialect, SchemaSql, Sql, Values } from './database.ts';
import { InDoubt, StoreError } from './error.ts';
import { dialects } from './migrations.ts';
import { GroupCommit, Mutex } from './sqliteWrites.ts';

/** Another process may hold the write lock for the duration of an operator's command. */
const busyMilliseconds = 5000;

const dialect: Dialect = {
  // A writing transaction locks the whole database.
  forUpdate: '',
  through: (index) => ` INDEXED BY ${index}`,
  // SQLite's own `lower` knows ASCII only.
  lower: (expression) => `unicode_lower(${expression})`,
  clock: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
  followNumbers: () => undefined,
  schema: dialects.sqlite,
};

type Statement = Sqlite.Statement<[Values], unknown>;

/** Statements on one connection. */
class Connection implements SchemaSql {
  readonly dialect = dialect;
  readonly #sqlite: Sqlite.Database;
  /** Prepared statements by text; bounded, because texts are constants of the program. */
  readonly #statements = new Map<string, Statement>();
  #writes = 0;

  constructor(sqlite: Sqlite.Database) {
    this.#sqlite = sqlite;
  }

  /** Statements so far that may have written something. */
  get writes(): number {
    return this.#writes;
  }

  version(): undefined {
    return undefined;
  }

  async all<Row>(text: string, values: Values = {}): Promise<Row[]> {
    return this.#statement(text).all(values) as Row[];
  }

  async get<Row>(text: string, values: Values = {}): Promise<Row | undefined> {
    return this.#statement(text).get(values) as Row | undefined;
  }

  async run(text: string, values: Values = {}): Promise<number> {
    return this.#statement(text).run(values).changes;
  }

  async script(text: string): Promise<void> {
    this.#writes++;
    this.#sqlite.exec(text);
  }

  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return work(this);
  }

  #statement(text: string): Statement {
    let statement = this.#statements.get(text);
    if (!statement) {
      statement = this.#sqlite.prepare(text);
      this.#statements.set(text, statement);
    }
    if (!statement.readonly) this.#writes++;
    return statement;
  }
}

/**
 * SQLite is synchronous. Calls wait for other transactions, and then for the disk: a commit goes to the write-ahead
 * log, which libuv's pool syncs while other work continues (decision 0170).
 */
class SqliteDatabase implements Database {
  readonly dialect = dialect;
  readonly name: string;
  readonly #sqlite: Sqlite.Database;
  readonly #connection: Connection;
  readonly #mutex = new Mutex();
  /** File descriptor of SQLite's log, which exists after the first write. */
  #log: number | undefined;
  readonly #disk = new GroupCommit(async () => {
    this.#log ??= openSync(`${this.name}-wal`, 'r+');
    await promisify(fs.fdatasync)(this.#log);
  });

  /** What other connections have committed, as a number that changes. */
  readonly #dataVersion: Sqlite.Statement<[], number>;
  #version = 0;
  /** What others and this process had written at the version. */
  #seen = { others: 0, own: 0 };

  constructor(sqlite: Sqlite.Database) {
    this.name = sqlite.name;
    this.#sqlite = sqlite;
    this.#connection = new Connection(sqlite);
    this.#dataVersion = sqlite.prepare<[], number>('PRAGMA data_version').pluck();
  }

  version(): number | undefined {
    if (this.#sqlite.inTransaction) return undefined;
    try {
      const others = this.#dataVersion.get() ?? 0;
      const own = this.#connection.writes;
      if (others !== this.#seen.others || own !== this.#seen.own) {
        this.#seen = { others, own };
        this.#version++;
      }
      return this.#version;
    } catch (error) {
      if (isCode(error, 'SQLITE_BUSY')) return undefined;
      throw error;
    }
  }

  all<Row>(text: string, values?: Values): Promise<Row[]> {
    return this.#exclusively(() => this.#connection.all<Row>(text, values));
  }

  get<Row>(text: string, values?: Values): Promise<Row | undefined> {
    return this.#exclusively(() => this.#connection.get<Row>(text, values));
  }

  run(text: string, values?: Values): Promise<number> {
    return this.#exclusively(() => this.#connection.run(text, values));
  }

  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#within('BEGIN IMMEDIATE', work);
  }

  exclusive<T>(work: (sql: SchemaSql) => Promise<T>): Promise<T> {
    return this.#within('BEGIN IMMEDIATE', work);
  }

  snapshot<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#within('BEGIN', work);
  }

  async close(): Promise<void> {
    // Closing the last connection checkpoints the log, and returns when that is durable.
    this.#sqlite.close();
    if (this.#log === undefined) return;
    await this.#disk.done().catch(() => {});
    closeSync(this.#log);
  }

  #within<T>(begin: string, work: (sql: SchemaSql) => Promise<T>): Promise<T> {
    return this.#exclusively(async () => {
      this.#sqlite.exec(begin);
      try {
        const result = await work(this.#connection);
        this.#sqlite.exec('COMMIT');
        return result;
      } catch (error) {
        if (this.#sqlite.inTransaction) this.#sqlite.exec('ROLLBACK');
        throw error;
      }
    });
  }

  /** Runs `work` alone in this process, and resolves when what it wrote is on the disk. */
  async #exclusively<T>(work: () => Promise<T>): Promise<T> {
    let result: T;
    let wrote: boolean;
    await this.#mutex.acquire();
    try {
      const before = this.#connection.writes;
      result = await this.#retryWhileBusy(work);
      wrote = this.#connection.writes > before;
    } finally {
      this.#mutex.release();
    }
    if (wrote) await this.#toDisk();
    return result;
  }

  /** Retries while another process locks the database; SQLite's own busy handler would block this thread. */
  async #retryWhileBusy<T>(work: () => Promise<T>): Promise<T> {
    const until = performance.now() + busyMilliseconds;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (isCode(error, ...diskFaults)) throw unavailable(error);
        if (!isCode(error, 'SQLITE_BUSY')) throw error;
        if (performance.now() > until) throw unavailable(error);
        await sleep(1 + Math.random() * 4);
      }
    }
  }

  async #toDisk(): Promise<void> {
    try {
      await this.#disk.done();
    } catch (error) {
      throw unavailable(new InDoubt(`the disk write failed: ${(error as Error).message}`, { cause: error }));
    }
  }
}

const isCode = (error: unknown, ...codes: readonly string[]): error is Error =>
  error instanceof Sqlite.SqliteError && codes.some((code) => error.code.startsWith(code));

/** No space, a quota that is used up (an I/O error), a disk that fails: what is waiting for them is tried again. */
const diskFaults = ['SQLITE_FULL', 'SQLITE_IOERR'] as const;

/** Nothing was executed. */
const unavailable = (cause: Error) =>
  new StoreError('STORE_UNAVAILABLE', `The database cannot be written at the moment: ${cause.message}.`, {
    cause,
  });

/** Files that a server with accounts leaves beside its database. */
const traces = ['local-key', 'console-link'];

/**
 * Throws STORE_FILE for an empty database in a folder that had one with accounts: it was cut, by a full disk or a failed copy, and
 * a new ledger in its place would forget every key and credit.
 */
function assertNotEmptied(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.size !== 0) return;
  const folder = path.dirname(file);
  const trace = traces.find((name) => existsSync(path.join(folder, name)));
  if (trace === undefined) return;
  const message = `The database ${file} is empty, but ${trace} beside it shows that it had accounts. Restore the backup, or remove both to begin anew.`;
  throw new StoreError('STORE_FILE', message);
}

/**
 * Opens or creates the database, readable by its owner only.
 *
 * WAL: a commit survives `kill -9` once it is in the log, and a power failure once the log is synced. With
 * synchronous=FULL SQLite would sync, and block the thread, at every commit; with NORMAL it does so only
 * before a checkpoint, and `SqliteDatabase` syncs commits itself (decision 0170).
 */
export function openSqlite(file: string): Database {
  makeFolder('data folder', path.dirname(file), 0o700);
  assertNotEmptied(file);
  let sqlite: Sqlite.Database | undefined;
  try {
    // Created before SQLite opens it, so that others can never read it; -wal and -shm inherit its mode.
    closeSync(openSync(file, 'a', 0o600));
    chmodSync(file, 0o600);
    sqlite = new Sqlite(file, { timeout: busyMilliseconds });
    sqlite.pragma('journal_mode = WAL');
    sqlite.pragma('synchronous = NORMAL');
    sqlite.pragma('foreign_keys = ON');
    sqlite.pragma('trusted_schema = OFF');
    sqlite.pragma('busy_timeout = 0');
    sqlite.function('unicode_lower', { deterministic: true }, (text) => String(text).toLowerCase());
    return new SqliteDatabase(sqlite);
  } catch (error) {
    sqlite?.close();
    const message = `The database ${file} cannot be opened: ${messageOf(error)}.`;
    throw new StoreError('STORE_OPEN', message, { cause: error });
  }
}

/**
 * Makes this process the only server of a data folder until `release` or its end, however it ends, by a lock
 * of the operating system. A start relies on it when it releases all reservations that it finds.
 */
export function lockFolder(folder: string): Lock {
  const file = path.join(folder, 'server.lock');
  makeFolder('data folder', folder, 0o700);
  assertUsable('data folder', folder);
  let lock: Lock | undefined;
  try {
    lock = tryLock(file);
    chmodSync(file, 0o600);
  } catch (error) {
    lock?.release();
    const reason = accessSentence(error) ?? `${messageOf(error)}.`;
    throw new StoreError('STORE_OPEN', `The data folder ${folder} cannot be locked: ${reason}`, {
      cause: error,
    });
  }
  if (lock) return lock;
  const message = `Another server already uses the data folder ${folder}; stop it or choose another folder.`;
  throw new StoreError('STORE_IN_USE', message);
}
