import { createHash } from 'node:crypto';
import type { Database, SchemaSql } from './database.ts';
import { StoreError } from './error.ts';
import { dialects, type Migration, migrations } from './migrations.ts';

interface Applied {
  readonly version: number;
  readonly checksum: string;
}

/** The checksum of the text for SQLite, on both databases, so that a copy of one in the other is known too. */
const checksum = ({ sql }: Migration) => createHash('sha256').update(sql(dialects.sqlite)).digest('hex');

/**
 * Applies the missing steps, in order, atomically, and once for all processes that start at the same time.
 * Versions count from 1 without gaps. Refuses a database that a newer program migrated (STORE_NEWER), and one
 * whose applied steps differ from this program's (STORE_CHANGED). Resolves with the versions of the schema before and now, 0
 * where there was none.
 */
export const migrate = (database: Database, steps: readonly Migration[] = migrations) =>
  database.exclusive(async (sql) => {
    const applied = await appliedSteps(sql);
    if (applied.length > steps.length) {
      throw new StoreError(
        'STORE_NEWER',
        `The database has schema version ${applied.length}, this program knows ${steps.length}: start the newer program, or restore an older copy.`,
      );
    }
    for (const [index, step] of steps.entries()) {
      const version = index + 1;
      const known = applied[index];
      if (known === undefined) {
        await sql.script(step.sql(sql.dialect.schema));
        await sql.run(
          'INSERT INTO migration (version, name, checksum, applied_at) VALUES (@version, @name, @checksum, @at)',
          { version, name: step.name, checksum: checksum(step), at: Date.now() },
        );
      } else if (known.version !== version || known.checksum !== checksum(step)) {
        throw new StoreError(
          'STORE_CHANGED',
          `Step ${version} (${step.name}) of the database's schema differs from this program's.`,
        );
      }
    }
    return { from: applied.length, to: steps.length };
  });

async function appliedSteps(sql: SchemaSql): Promise<Applied[]> {
  const { integer, text, strict } = sql.dialect.schema;
  await sql.script(`CREATE TABLE IF NOT EXISTS migration (
    version ${integer} PRIMARY KEY, name ${text} NOT NULL, checksum ${text} NOT NULL, applied_at ${integer} NOT NULL
  )${strict}`);
  return sql.all<Applied>('SELECT version, checksum FROM migration ORDER BY version');
}
