import fs, { statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import Sqlite from 'better-sqlite3';
import { InDoubt } from '../../src/store/error.ts';
import { openStore } from '../../src/store/open.ts';
import { lockFolder } from '../../src/store/sqlite.ts';
import { testStoreContract } from '../contract/store.ts';
import { type Cleanup, sqlitePlace, testFolder, withDisk } from '../support/stores.ts';

testStoreContract(test, sqlitePlace);

const modeOf = (file: string) => statSync(file).mode & 0o777;

async function open(t: Cleanup, dataDir = testFolder(t)) {
  const database = await openStore({ dataDir });
  t.teardown(() => database.close());
  return { dataDir, database };
}

test('the database and its auxiliary files are readable by their owner only', async (t) => {
  const { dataDir, database } = await open(t, path.join(testFolder(t), 'new'));
  await database.run("INSERT INTO account (id, name, created_at) VALUES ('a', 'A', 0)");
  t.is(modeOf(dataDir), 0o700);
  for (const name of ['books.db', 'books.db-wal', 'books.db-shm']) {
    t.is(modeOf(path.join(dataDir, name)), 0o600, name);
  }
});

test.serial('writers wait for the disk together; readers do not', async (t) => {
  const { dataDir, database } = await open(t);
  t.deepEqual(await database.get('PRAGMA journal_mode'), { journal_mode: 'wal' });
  const log = statSync(path.join(dataDir, 'books.db-wal')).ino;
  const waiting: (() => void)[] = [];
  withDisk(t, (descriptor, answer) => {
    t.is(fs.fstatSync(descriptor).ino, log);
    waiting.push(() => answer(null));
  });
  const done: string[] = [];
  const write = (id: string) =>
    database
      .transaction((sql) =>
        sql.run('INSERT INTO account (id, name, created_at) VALUES (@id, @id, 0)', { id }),
      )
      .then(() => done.push(id));
  const writing = [write('a'), write('b'), write('c')];
  await setImmediate();
  t.is(waiting.length, 1, 'of b and c only when the disk has taken a');
  const rows = await database.all<{ id: string }>('SELECT id FROM account ORDER BY id');
  t.deepEqual(
    rows.map(({ id }) => id),
    ['a', 'b', 'c'],
  );
  await t.throwsAsync(
    database.transaction(async () => {
      throw new Error('changed its mind');
    }),
  );
  t.deepEqual(done, []);
  waiting.shift()?.();
  await writing[0];
  await setImmediate();
  t.is(waiting.length, 1, 'one time for b and c');
  t.deepEqual(done, ['a']);
  waiting.shift()?.();
  await Promise.all(writing);
  t.deepEqual(done.sort(), ['a', 'b', 'c']);
  await database.snapshot((sql) => sql.all('SELECT id FROM account'));
  t.is(waiting.length, 0);
  withDisk(t);
});

test.serial('a failed sync leaves the outcome unknown, and is retried with the next', async (t) => {
  const { database } = await open(t);
  let broken = true;
  withDisk(t, (_descriptor, answer) => answer(broken ? new Error('EIO: i/o error, fdatasync') : null));
  const remove = () => database.run('DELETE FROM console_link');
  const error = await t.throwsAsync(remove(), { code: 'STORE_UNAVAILABLE' });
  t.true(error?.cause instanceof InDoubt);
  broken = false;
  t.is(await remove(), 0);
});

test('a database locked by another process for too long is unavailable', async (t) => {
  t.timeout(30_000);
  const { dataDir, database } = await open(t);
  const other = new Sqlite(path.join(dataDir, 'books.db'));
  other.exec('BEGIN IMMEDIATE');
  await t.throwsAsync(database.run('DELETE FROM console_link'), { code: 'STORE_UNAVAILABLE' });
  other.close();
  t.is(await database.run('DELETE FROM console_link'), 0);
});

test('a file that is not a database is refused in one sentence and not changed', async (t) => {
  const dataDir = testFolder(t);
  const file = path.join(dataDir, 'books.db');
  writeFileSync(file, 'x'.repeat(10_000));
  await t.throwsAsync(openStore({ dataDir }), {
    code: 'STORE_OPEN',
    message: /^The database .*books\.db cannot be opened: file is not a database\.$/,
  });
  t.is(statSync(file).size, 10_000);
});

test('a folder has one server at a time', (t) => {
  const folder = testFolder(t);
  const first = lockFolder(folder);
  t.throws(() => lockFolder(folder), { code: 'STORE_IN_USE', message: /Another server/ });
  first.release();
  const second = lockFolder(folder);
  second.release();
  t.is(modeOf(path.join(folder, 'server.lock')), 0o600);
});

test('an emptied database beside the traces of a server is refused; one that is new is not', async (t) => {
  const folder = testFolder(t);
  const file = path.join(folder, 'books.db');
  writeFileSync(file, '');
  await (await openStore({ dataDir: folder })).close();
  truncateSync(file);
  writeFileSync(path.join(folder, 'local-key'), 'cutout_x');
  const error = await t.throwsAsync(openStore({ dataDir: folder }), { code: 'STORE_FILE' });
  t.regex(error.message, /is empty, but local-key beside it/);
});
