import type { Stores } from '../../src/billing/stores.ts';
import type { Database } from '../../src/store/database.ts';

/** Makes all audit events fail from now on; returns a function that ends that. */
export async function breakAudit({ database }: Pick<Stores, 'database'>): Promise<() => Promise<void>> {
  const isPostgres = database.dialect.forUpdate !== '';
  if (isPostgres) {
    // As if another client had locked the table for longer than statements wait.
    await database.run(`CREATE OR REPLACE FUNCTION refuse_audit() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN RAISE EXCEPTION ''canceling statement due to lock timeout'' USING ERRCODE = ''55P03''; END'`);
    await database.run(
      'CREATE TRIGGER audit_fails BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION refuse_audit()',
    );
  } else {
    await database.run(
      "CREATE TRIGGER audit_fails BEFORE INSERT ON audit BEGIN SELECT raise(ABORT, 'no event today'); END",
    );
  }
  return async () => {
    await database.run(`DROP TRIGGER audit_fails${isPostgres ? ' ON audit' : ''}`);
  };
}

const tables = [
  'account',
  'api_key',
  'entry',
  'identity',
  'former_account',
  'deleted_account',
  'console_link',
  'improve_image',
  'audit',
];

/** Every row that an operator or an account holder can change. */
export const contents = (database: Database): Promise<Record<string, unknown[]>> =>
  database.snapshot(async (sql) => {
    const found: Record<string, unknown[]> = {};
    for (const table of tables) {
      const rows = (await sql.all(`SELECT * FROM ${table}`)).map((row) => JSON.stringify(row));
      found[table] = rows.toSorted();
    }
    return found;
  });
