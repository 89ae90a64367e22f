import type { Database, Sql } from '../../src/store/database.ts';

/** The same database with other transactions, single writes included. */
export function withTransactions(database: Database, transaction: Database['transaction']): Database {
  return {
    dialect: database.dialect,
    version: () => database.version(),
    name: database.name,
    all: (text, values) => database.all(text, values),
    get: (text, values) => database.get(text, values),
    run: (text, values) => transaction((sql) => sql.run(text, values)),
    transaction,
    exclusive: (work) => database.exclusive(work),
    snapshot: (work) => database.snapshot(work),
    close: () => database.close(),
  };
}

/** The same statements, before each of which `before` is called; the statement fails with its exception. */
export const withStatements = (sql: Sql, before: (values: object) => void): Sql => ({
  dialect: sql.dialect,
  version: () => sql.version(),
  all: async (text, values) => {
    before(values ?? {});
    return sql.all(text, values);
  },
  get: async (text, values) => {
    before(values ?? {});
    return sql.get(text, values);
  },
  run: async (text, values) => {
    before(values ?? {});
    return sql.run(text, values);
  },
  transaction: (work) => work(withStatements(sql, before)),
});
