import type { Database } from './database.ts';
import { isUnavailable } from './error.ts';

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
