import { createHash } from 'node:crypto';
import { StoreError } from './error.ts';
import { type Migration, migrations } from './migrations/index.ts';
import type { Database } from './sqlite.ts';

interface Applied {
  readonly version: number;
  readonly checksum: string;
}

const checksum = (sql: string) => createHash('sha256').update(sql).digest('hex');

/**
 * Applies what is missing, in order, all or nothing. Versions count from 1 without gaps. Refuses a database
 * that a newer program wrote, and one whose applied steps differ from those this program knows.
 */
export function migrate(database: Database, steps: readonly Migration[] = migrations): void {
  database.exec(`CREATE TABLE IF NOT EXISTS migration (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
  ) STRICT`);
  const apply = database.transaction(() => {
    const applied = database
      .prepare<[], Applied>('SELECT version, checksum FROM migration ORDER BY version')
      .all();
    if (applied.length > steps.length) {
      throw new StoreError(
        'STORE_NEWER',
        `The database has schema version ${applied.length}, this program knows ${steps.length}: start the newer program, or restore an older copy.`,
      );
    }
    const record = database.prepare('INSERT INTO migration VALUES (?, ?, ?, ?)');
    for (const [index, step] of steps.entries()) {
      const known = applied[index];
      if (known === undefined) {
        database.exec(step.sql);
        record.run(index + 1, step.name, checksum(step.sql), Date.now());
      } else if (known.version !== index + 1 || known.checksum !== checksum(step.sql)) {
        throw new StoreError(
          'STORE_CHANGED',
          `Step ${index + 1} (${step.name}) of the database's schema differs from this program's.`,
        );
      }
    }
  });
  apply.immediate();
}
