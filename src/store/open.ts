import path from 'node:path';
import { messageOf } from '../errors.ts';
import type { Database } from './database.ts';
import { isUnavailable, StoreError } from './error.ts';
import { migrate } from './migrate.ts';
import { openSqlite } from './sqlite.ts';

export interface StoreOptions {
  readonly dataDir: string;
  /** CUTOUT_DATABASE_URL: PostgreSQL instead of `<dataDir>/books.db`. */
  readonly databaseUrl?: string | undefined;
}

/** Opens the database without checking its schema. Rejects with StoreError. */
export async function openDatabase({ dataDir, databaseUrl }: StoreOptions): Promise<Database> {
  if (databaseUrl === undefined) return openSqlite(path.join(dataDir, 'books.db'));
  // Loads the driver only if it is used.
  const { openPostgres } = await import('./postgres.ts');
  return openPostgres({ url: databaseUrl });
}

/** Opens the database and migrates its schema. Rejects with StoreError. */
export async function openStore(options: StoreOptions): Promise<Database> {
  const database = await openDatabase(options);
  try {
    await migrate(database);
    return database;
  } catch (error) {
    await database.close();
    if (error instanceof StoreError) throw error;
    const message = `The schema of the database ${database.name} cannot be brought up to date: ${messageOf(error)}.`;
    throw new StoreError('STORE_OPEN', message, { cause: error });
  }
}

/** The database; `onUnavailable` is called for every call that rejects with STORE_UNAVAILABLE. */
export function watchDatabase(database: Database, onUnavailable: () => void): Database {
  const watched = async <T>(call: Promise<T>): Promise<T> => {
    try {
      return await call;
    } catch (error) {
      if (isUnavailable(error)) onUnavailable();
      throw error;
    }
  };
  return {
    name: database.name,
    dialect: database.dialect,
    version: () => database.version(),
    all: (text, values) => watched(database.all(text, values)),
    get: (text, values) => watched(database.get(text, values)),
    run: (text, values) => watched(database.run(text, values)),
    transaction: (work) => watched(database.transaction(work)),
    exclusive: (work) => watched(database.exclusive(work)),
    snapshot: (work) => watched(database.snapshot(work)),
    close: () => database.close(),
  };
}
