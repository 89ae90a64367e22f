import type { ExecutionContext, TestFn } from 'ava';
import type { Database } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrate.ts';
import { migrations } from '../../src/store/migrations.ts';
import { NodeTable } from '../../src/store/nodeTable.ts';
import { openStore } from '../../src/store/open.ts';
import type { NewPlace, Place } from '../support/stores.ts';

/** What every database must do. Registers its tests with `test`. */
export function testStoreContract(test: TestFn, newPlace: NewPlace): void {
  /** One more connection to a database, closed after the test. */
  const openAt = async (t: ExecutionContext, place: Place): Promise<Database> => {
    const database = await openStore({ ...place });
    t.teardown(() => database.close());
    return database;
  };
  const open = async (t: ExecutionContext): Promise<Database> => openAt(t, await newPlace(t));
  const insert = 'INSERT INTO account (id, name, created_at) VALUES (@id, @name, 0)';
  const names = async (database: Database) =>
    (await database.all<{ name: string }>('SELECT name FROM account ORDER BY id')).map(({ name }) => name);

  test('store: values are returned as they were written', async (t) => {
    const database = await open(t);
    const value = Buffer.from([0, 1, 255]);
    await database.run('INSERT INTO secret (name, value) VALUES (@name, @value)', { name: 'ü', value });
    const row = await database.get<{ name: string; value: Buffer }>('SELECT name, value FROM secret');
    t.is(row?.name, 'ü');
    t.deepEqual(Buffer.from(row?.value ?? []), value);
    const large = Number.MAX_SAFE_INTEGER;
    await database.run(
      'INSERT INTO account (id, name, email, created_at, balance) VALUES (@id, @id, @email, @large, 7)',
      { id: 'a', email: null, large, 'not in the text': 1 },
    );
    t.deepEqual(
      await database.all(
        'SELECT email, created_at AS "createdAt", sum(balance) AS sum, count(*) AS n FROM account GROUP BY email, created_at',
      ),
      [{ email: null, createdAt: large, sum: 7, n: 1 }],
    );
    t.is(await database.get('SELECT id FROM account WHERE id = @id', { id: 'b' }), undefined);
    await t.throwsAsync(database.get('SELECT id FROM account WHERE id = @id', {}), { any: true });
  });

  test('store: rows with invalid references and duplicate rows are refused', async (t) => {
    const database = await open(t);
    await t.throwsAsync(
      database.run("INSERT INTO free_use (account_id, period, used) VALUES ('nobody', '2026-11', 1)"),
      { any: true, message: /foreign key/i },
    );
    await database.run(insert, { id: 'a', name: 'A' });
    await t.throwsAsync(database.run(insert, { id: 'a', name: 'B' }), { any: true });
    t.deepEqual(await names(database), ['A']);
  });

  test('store: text is ordered by its bytes', async (t) => {
    const database = await open(t);
    for (const id of ['b', 'B', 'a', '_', 'ä']) await database.run(insert, { id, name: id });
    t.deepEqual(await names(database), ['B', '_', 'a', 'b', 'ä']);
  });

  test('store: a transaction is atomic', async (t) => {
    const database = await open(t);
    const failing = database.transaction(async (sql) => {
      await sql.run(insert, { id: 'a', name: 'A' });
      t.is((await sql.all('SELECT id FROM account')).length, 1);
      throw new Error('no more');
    });
    await t.throwsAsync(failing, { message: 'no more' });
    t.deepEqual(await names(database), []);
    const nested = await database.transaction((sql) =>
      sql.transaction(async (inner) => {
        await inner.run(insert, { id: 'a', name: 'A' });
        return 'done';
      }),
    );
    t.is(nested, 'done');
    t.deepEqual(await names(database), ['A']);
  });

  test('store: writes of others meanwhile are not part of a transaction', async (t) => {
    const database = await open(t);
    let others: Promise<unknown> | undefined;
    const failing = database.transaction(async (sql) => {
      await sql.run(insert, { id: 'a', name: 'A' });
      others ??= Promise.all([database.run(insert, { id: 'b', name: 'B' }), names(database)]);
      await new Promise((later) => setTimeout(later, 20));
      throw new Error('no more');
    });
    await t.throwsAsync(failing, { message: 'no more' });
    await others;
    t.deepEqual(await names(database), ['B']);
  });

  test('store: transactions on the same row do not overlap', async (t) => {
    const place = await newPlace(t);
    const nodes = [await openAt(t, place), await openAt(t, place)];
    await nodes[0]?.run(insert, { id: 'a', name: 'A' });
    const count = (database: Database) =>
      database.transaction(async (sql) => {
        const { forUpdate } = sql.dialect;
        const row = await sql.get<{ balance: number }>(
          `SELECT balance FROM account WHERE id = 'a'${forUpdate}`,
        );
        await sql.run("UPDATE account SET balance = @balance WHERE id = 'a'", {
          balance: (row?.balance ?? 0) + 1,
        });
      });
    await Promise.all(nodes.flatMap((node) => Array.from({ length: 25 }, () => count(node))));
    t.like(await nodes[1]?.get('SELECT balance FROM account'), { balance: 50 });
  });

  test('store: transactions that wait for each other both complete', async (t) => {
    const place = await newPlace(t);
    const nodes = [await openAt(t, place), await openAt(t, place)];
    for (const id of ['a', 'b']) await nodes[0]?.run(insert, { id, name: id });
    const add = 'UPDATE account SET balance = balance + 1 WHERE id = @id';
    const both = (database: Database, ...ids: string[]) =>
      database.transaction(async (sql) => {
        for (const id of ids) await sql.run(add, { id });
      });
    await Promise.all(
      nodes.flatMap((node, index) =>
        Array.from({ length: 3 }, () => (index ? both(node, 'a', 'b') : both(node, 'b', 'a'))),
      ),
    );
    t.deepEqual(await nodes[0]?.all('SELECT balance FROM account'), [{ balance: 6 }, { balance: 6 }]);
  });

  test('store: a snapshot is consistent', async (t) => {
    const place = await newPlace(t);
    const [reader, writer] = [await openAt(t, place), await openAt(t, place)];
    await reader.snapshot(async (sql) => {
      t.is((await sql.all('SELECT id FROM account')).length, 0);
      await writer.run(insert, { id: 'a', name: 'A' });
      t.is((await sql.all('SELECT id FROM account')).length, 0);
    });
    t.is((await names(reader)).length, 1);
  });

  test('nodes: a lease from before the clock was set back lasts one lease from now', async (t) => {
    const database = await open(t);
    const nodes = new NodeTable(database);
    const ids = async () => (await database.all<{ id: string }>('SELECT id FROM node')).map(({ id }) => id);
    await nodes.renew('dead', 2 * 86_400_000);
    await nodes.removeExpired(60_000);
    t.deepEqual(await ids(), ['dead'], 'a living one has time to renew it');
    const [row] = await database.all<{ left: number }>(
      `SELECT expires_at - ${database.dialect.clock} AS left FROM node`,
    );
    t.true((row?.left ?? Number.NaN) <= 60_000, `${row?.left} ms`);
    // A lease of no time, which is over.
    await nodes.removeExpired(0);
    await nodes.removeExpired(0);
    t.deepEqual(await ids(), []);
  });

  test('store: its clock is in Unix milliseconds', async (t) => {
    const database = await open(t);
    const row = await database.get<{ now: number }>(`SELECT ${database.dialect.clock} AS now`);
    t.true(Math.abs((row?.now ?? 0) - Date.now()) < 5000);
  });

  test('schema: opening again changes nothing', async (t) => {
    const place = await newPlace(t);
    const applied = 'SELECT version, applied_at FROM migration ORDER BY version';
    const first = await (await openAt(t, place)).all(applied);
    t.is(first.length, migrations.length);
    t.deepEqual(await (await openAt(t, place)).all(applied), first);
  });

  test('schema: a missing step is applied once, for all processes that start at the same time', async (t) => {
    const place = await newPlace(t);
    const nodes = await Promise.all(Array.from({ length: 4 }, () => openAt(t, place)));
    await nodes[0]?.run(insert, { id: 'a', name: 'A' });
    const added = {
      name: 'more',
      sql: () => 'CREATE TABLE more (id TEXT); INSERT INTO more SELECT id FROM account',
    };
    const done = await Promise.all(nodes.map((node) => migrate(node, [...migrations, added])));
    t.is(done.filter(({ from, to }) => from < to).length, 1);
    t.deepEqual(await nodes[0]?.all('SELECT id FROM more'), [{ id: 'a' }]);
  });

  test('schema: a step that fails leaves the database as it was', async (t) => {
    const database = await open(t);
    const steps = [
      ...migrations,
      { name: 'good', sql: () => 'CREATE TABLE good (id TEXT)' },
      { name: 'bad', sql: () => 'CREATE TABLE bad (id TEXT); INSERT INTO nothing VALUES (1)' },
    ];
    await t.throwsAsync(migrate(database, steps), { any: true });
    await t.throwsAsync(database.all('SELECT id FROM good'), { any: true });
    t.is((await migrate(database)).to, migrations.length);
  });

  test('schema: one of a newer program, or one changed by hand, is refused', async (t) => {
    const place = await newPlace(t);
    const database = await openAt(t, place);
    await migrate(database, [...migrations, { name: 'future', sql: () => 'CREATE TABLE future (id TEXT)' }]);
    await t.throwsAsync(openAt(t, place), { code: 'STORE_NEWER', message: /start the newer program/ });
    await database.run('DELETE FROM migration WHERE version > @known', { known: migrations.length });
    await database.run("UPDATE migration SET checksum = '0'");
    await t.throwsAsync(openAt(t, place), { code: 'STORE_CHANGED' });
  });
}
