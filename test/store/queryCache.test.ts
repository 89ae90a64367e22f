import test from 'ava';
import { openStore } from '../../src/store/open.ts';
import { QueryCache } from '../../src/store/queryCache.ts';
import { type Cleanup, testFolder } from '../support/stores.ts';

const insert = 'INSERT INTO account (id, name, created_at) VALUES (@id, @id, 0)';

/** A cache of the names of all accounts, and how often the database was asked. */
async function cached(t: Cleanup) {
  const dataDir = testFolder(t);
  const open = async () => {
    const database = await openStore({ dataDir });
    t.teardown(() => database.close());
    return database;
  };
  const database = await open();
  const cache = new QueryCache<{ names: string }>(database);
  let asked = 0;
  const names = async (between = async () => {}) => {
    const found = await cache.get('all', async () => {
      asked++;
      const row = await database.get<{ names: string }>(
        "SELECT coalesce(group_concat(id, ''), '') AS names FROM account",
      );
      await between();
      return row;
    });
    return found?.names;
  };
  return { open, database, names, asked: () => asked };
}

test('the database is asked once until somebody writes: this process, or another', async (t) => {
  const { open, database, names, asked } = await cached(t);
  const other = await open();
  for (let i = 0; i < 3; i++) t.is(await names(), '');
  t.is(asked(), 1);
  await database.run(insert, { id: 'a' });
  for (let i = 0; i < 3; i++) t.is(await names(), 'a');
  t.is(asked(), 2);
  await other.run(insert, { id: 'b' });
  for (let i = 0; i < 3; i++) t.is(await names(), 'ab');
  t.is(asked(), 3);
});

test('what is written while the database answers is found by the next call', async (t) => {
  const { open, database, names } = await cached(t);
  const other = await open();
  t.is(await names(async () => void (await database.run(insert, { id: 'a' }))), '');
  t.is(await names(), 'a');
  await database.run(insert, { id: 'b' });
  t.is(await names(async () => void (await other.run(insert, { id: 'c' }))), 'ab');
  t.is(await names(), 'abc');
});

test('while a transaction of this process runs, calls wait for it', async (t) => {
  const { database, names } = await cached(t);
  t.is(await names(), '');
  let commit = () => {};
  const begun = new Promise<void>((resolve) => {
    void database.transaction(async (sql) => {
      t.is(sql.version(), undefined);
      await sql.run(insert, { id: 'a' });
      resolve();
      await new Promise<void>((committing) => {
        commit = committing;
      });
    });
  });
  await begun;
  t.is(database.version(), undefined);
  const found = names();
  commit();
  t.is(await found, 'a');
});

test('the version changes with writes only, not with reads', async (t) => {
  const { open, database } = await cached(t);
  const other = await open();
  const before = database.version();
  t.is(typeof before, 'number');
  for (const reader of [database, other]) {
    await reader.all('SELECT id FROM account');
    await reader.snapshot((sql) => sql.all('SELECT id FROM account'));
  }
  t.is(database.version(), before);
});
