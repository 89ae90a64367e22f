import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import Sqlite from 'better-sqlite3';
import { openStore } from '../../src/store/open.ts';
import { lockFolder } from '../../src/store/sqlite.ts';
import { testStoreContract } from '../contract/store.ts';
import { type Cleanup, nativeBinding, sqlitePlace, testFolder } from '../support/books.ts';

testStoreContract(test, sqlitePlace);

const modeOf = (file: string) => statSync(file).mode & 0o777;

async function open(t: Cleanup, dataDir = testFolder(t)) {
  const database = await openStore({ dataDir, nativeBinding });
  t.teardown(() => database.close());
  return { dataDir, database };
}

test('the database and everything beside it is readable by its owner only', async (t) => {
  const { dataDir, database } = await open(t, path.join(testFolder(t), 'new'));
  await database.run("INSERT INTO account (id, name, created_at) VALUES ('a', 'A', 0)");
  t.is(modeOf(dataDir), 0o700);
  for (const name of ['books.db', 'books.db-wal', 'books.db-shm']) {
    t.is(modeOf(path.join(dataDir, name)), 0o600, name);
  }
});

test('commits are durable', async (t) => {
  const { database } = await open(t);
  t.deepEqual(await database.get('PRAGMA journal_mode'), { journal_mode: 'wal' });
  t.deepEqual(await database.get('PRAGMA synchronous'), { synchronous: 2 });
});

test('a database that another process has for too long is unavailable, not broken', async (t) => {
  t.timeout(30_000);
  const { dataDir, database } = await open(t);
  const other = new Sqlite(path.join(dataDir, 'books.db'), { nativeBinding });
  other.exec('BEGIN IMMEDIATE');
  await t.throwsAsync(database.run('DELETE FROM console_link'), { code: 'STORE_UNAVAILABLE' });
  other.close();
  t.is(await database.run('DELETE FROM console_link'), 0);
});

test('a file that is no database is refused in one sentence and not touched', async (t) => {
  const dataDir = testFolder(t);
  const file = path.join(dataDir, 'books.db');
  writeFileSync(file, 'x'.repeat(10_000));
  await t.throwsAsync(openStore({ dataDir, nativeBinding }), {
    code: 'STORE_OPEN',
    message: /^The database .*books\.db cannot be opened: file is not a database\.$/,
  });
  t.is(statSync(file).size, 10_000);
});

test('a folder has one server at a time', (t) => {
  const folder = testFolder(t);
  const first = lockFolder(folder, nativeBinding);
  t.throws(() => lockFolder(folder, nativeBinding), { code: 'STORE_IN_USE', message: /Another server/ });
  first.release();
  const second = lockFolder(folder, nativeBinding);
  second.release();
  t.is(modeOf(path.join(folder, 'server.lock')), 0o600);
});
