import test, { type ExecutionContext } from 'ava';
import { Ledger } from '../../src/billing/ledger.ts';
import { credits } from '../../src/billing/price.ts';
import type { Database } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrate.ts';
import { migrations } from '../../src/store/migrations.ts';
import { openDatabase } from '../../src/store/open.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';
import { type NewPlace, noFreePreviews, sqlitePlace, TestClock } from '../support/stores.ts';

/** The schema before `answer`, with the table `reservation`. */
const before = migrations.slice(0, 5);
const clock = new TestClock();
const names = { content: 'known', forMs: 600_000 };

/** A database as the previous version wrote it, with every kind of open reservation. */
async function writeOld(database: Database): Promise<void> {
  const { at } = clock;
  const run = (text: string) => database.run(text);
  await run(`INSERT INTO account (id, name, created_at, balance) VALUES ('a', 'A', ${at}, 24)`);
  let id = 1;
  let balance = 40;
  const entry = (kind: string, amount: number, more: string) => {
    balance += amount;
    return run(
      `INSERT INTO entry (id, account_id, at, kind, amount, balance, payment, reservation_id, note)
       VALUES (${id++}, 'a', ${at}, '${kind}', ${amount}, ${balance}, ${more})`,
    );
  };
  balance = 0;
  await entry('grant', 40, 'NULL, NULL, NULL');
  await entry('reserve', -4, "'full', NULL, NULL"); // 2: held
  await entry('reserve', -4, "'full', NULL, NULL"); // 3: charged, its answer in progress
  await entry('settle', 0, 'NULL, 3, NULL');
  await entry('reserve', -4, "'full', NULL, NULL"); // 5: charged, taken over by 7, which is held
  await entry('settle', 0, 'NULL, 5, NULL');
  await entry('reserve', 0, "'full', 5, 'repeat'"); // 7
  await entry('reserve', -4, "'full', NULL, NULL"); // 8: charged, taken over by 10, whose answer is in progress
  await entry('settle', 0, 'NULL, 8, NULL');
  await entry('reserve', 0, "'full', 8, 'repeat'"); // 10
  await entry('settle', 0, 'NULL, 10, NULL');
  await entry('reserve', 0, "'full', 3, 'repeat'"); // 12: a repeat of a final charge, its answer in progress
  await entry('settle', 0, 'NULL, 12, NULL');
  const open = (number: number, amount: number, state: string, carries: number | null) =>
    run(
      `INSERT INTO reservation (id, account_id, payment, amount, state, created_at, expires_at, node_id, carries)
       VALUES (${number}, 'a', 'full', ${amount}, '${state}', ${at}, ${at + 900_000}, 'n', ${carries})`,
    );
  await open(2, 4, 'held', null);
  await open(3, 4, 'charged', null);
  await open(7, 0, 'held', 5);
  await open(10, 0, 'charged', 8);
  await open(12, 0, 'charged', null);
  for (const name of ['content:known', 'key:k'])
    await run(
      `INSERT INTO repeat (account_id, name, reservation_id, expires_at) VALUES ('a', '${name}', 3, ${at + 600_000})`,
    );
  const follow = database.dialect.followNumbers('entry');
  if (follow) await database.get(follow);
}

async function upgraded(t: ExecutionContext, newPlace: NewPlace) {
  const place = await newPlace(t);
  const database = await openDatabase(place);
  t.teardown(() => database.close());
  await migrate(database, before);
  await writeOld(database);
  t.deepEqual(await migrate(database), { from: 5, to: migrations.length });
  const ledger = new Ledger(database, { billing: noFreePreviews, now: clock.now });
  t.deepEqual(await ledger.verify(), []);
  const balance = async () => (await ledger.balance('a')).credits;
  t.is(await balance(), credits(6));
  t.is(await ledger.openReservations(), 4);
  t.deepEqual(await database.all('SELECT name FROM repeat'), [{ name: 'content:known' }]);
  return { ledger, balance };
}

function testUpgrade(where: string, newPlace: NewPlace): void {
  test.serial(`${where}: what an older version left open is released when its server is gone`, async (t) => {
    const { ledger, balance } = await upgraded(t, newPlace);
    t.is(await ledger.recover(), 4);
    t.is(await ledger.openReservations(), 0);
    t.is(await balance(), credits(10));
    t.deepEqual(await ledger.verify(), []);
  });

  test.serial(`${where}: open answers of an older version expire`, async (t) => {
    const { ledger, balance } = await upgraded(t, newPlace);
    clock.forward(900_000);
    t.is(await ledger.sweep(), 4);
    clock.forward(-900_000);
    t.is(await ledger.openReservations(), 0);
    // Pending answers count as delivered (3, 8); pending work is released (2), and so is what it had taken over (5).
    t.is(await balance(), credits(8));
    t.deepEqual(await ledger.verify(), []);
  });

  test.serial(`${where}: content charged before the upgrade is not charged again`, async (t) => {
    const { ledger, balance } = await upgraded(t, newPlace);
    const reservation = await ledger.reserve('a', { size: 'full', requestId: 'r', repeat: names });
    t.is((await reservation.settle()).charge, 3);
    await ledger.recover();
    t.is(await balance(), credits(10), 'nobody answered');
    t.deepEqual(await ledger.verify(), []);
  });
}

testUpgrade('SQLite', sqlitePlace);
if (postgresMissing) test.skip(postgresMissing, () => {});
else {
  test.after.always(removePostgres);
  testUpgrade('PostgreSQL', postgresPlace);
}
