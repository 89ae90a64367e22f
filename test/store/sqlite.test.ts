import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { migrate } from '../../src/store/migrate.ts';
import { migrations } from '../../src/store/migrations/index.ts';
import { lockFolder, openSqlite } from '../../src/store/sqlite.ts';
import { nativeBinding, testFolder } from '../support/books.ts';

const modeOf = (file: string) => statSync(file).mode & 0o777;

test('the database and everything beside it is readable by its owner only', (t) => {
  const folder = testFolder(t);
  const file = path.join(folder, 'new', 'books.db');
  const database = openSqlite({ file, nativeBinding });
  t.teardown(() => database.close());
  database.exec("INSERT INTO account (id, name, created_at) VALUES ('a', 'A', 0)");
  t.is(modeOf(path.dirname(file)), 0o700);
  for (const name of ['books.db', 'books.db-wal', 'books.db-shm']) {
    t.is(modeOf(path.join(folder, 'new', name)), 0o600, name);
  }
});

test('commits are durable, keys are foreign keys', (t) => {
  const database = openSqlite({ file: path.join(testFolder(t), 'books.db'), nativeBinding });
  t.teardown(() => database.close());
  t.is(database.pragma('journal_mode', { simple: true }), 'wal');
  t.is(database.pragma('synchronous', { simple: true }), 2);
  t.throws(() => database.exec("INSERT INTO free_use VALUES ('nobody', '2026-11', 1)"), {
    any: true,
    code: 'SQLITE_CONSTRAINT_FOREIGNKEY',
  });
});

test('opening again changes nothing', (t) => {
  const file = path.join(testFolder(t), 'books.db');
  const first = openSqlite({ file, nativeBinding });
  const schema = first.prepare('SELECT sql FROM sqlite_schema').all();
  first.close();
  const second = openSqlite({ file, nativeBinding });
  t.teardown(() => second.close());
  t.deepEqual(second.prepare('SELECT sql FROM sqlite_schema').all(), schema);
});

test('a missing step is applied to what is there', (t) => {
  const database = openSqlite({ file: path.join(testFolder(t), 'books.db'), nativeBinding });
  t.teardown(() => database.close());
  database.exec("INSERT INTO account (id, name, created_at) VALUES ('a', 'A', 0)");
  const added = { name: 'more', sql: 'CREATE TABLE more (id TEXT); INSERT INTO more SELECT id FROM account' };
  migrate(database, [...migrations, added]);
  t.deepEqual(database.prepare('SELECT * FROM more').all(), [{ id: 'a' }]);
});

test('a step that fails leaves the database as it was', (t) => {
  const database = openSqlite({ file: path.join(testFolder(t), 'books.db'), nativeBinding });
  t.teardown(() => database.close());
  const steps = [
    ...migrations,
    { name: 'good', sql: 'CREATE TABLE good (id TEXT)' },
    { name: 'bad', sql: 'CREATE TABLE bad (id TEXT); INSERT INTO nothing VALUES (1)' },
  ];
  t.throws(() => migrate(database, steps), { any: true, code: 'SQLITE_ERROR' });
  t.is(database.prepare("SELECT 1 FROM sqlite_schema WHERE name IN ('good', 'bad')").get(), undefined);
  t.notThrows(() => migrate(database));
});

test('a database of a newer program is refused', (t) => {
  const file = path.join(testFolder(t), 'books.db');
  const database = openSqlite({ file, nativeBinding });
  migrate(database, [...migrations, { name: 'future', sql: 'CREATE TABLE future (id TEXT)' }]);
  database.close();
  t.throws(() => openSqlite({ file, nativeBinding }), {
    code: 'STORE_NEWER',
    message: /start the newer program/,
  });
});

test('a database whose schema was changed by hand in the program is refused', (t) => {
  const file = path.join(testFolder(t), 'books.db');
  const database = openSqlite({ file, nativeBinding });
  database.prepare('UPDATE migration SET checksum = ?').run('0');
  database.close();
  t.throws(() => openSqlite({ file, nativeBinding }), { code: 'STORE_CHANGED' });
});

test('a file that is no database is refused in one sentence and not touched', (t) => {
  const file = path.join(testFolder(t), 'books.db');
  writeFileSync(file, 'x'.repeat(10_000));
  t.throws(() => openSqlite({ file, nativeBinding }), {
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
