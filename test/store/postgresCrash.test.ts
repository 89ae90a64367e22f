import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import { credits } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import { InDoubt, StoreError } from '../../src/store/error.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import { unless } from '../fixtures/leftOut.ts';
import { type Postgres, postgresMissing, startPostgres } from '../fixtures/postgres.ts';
import { accountWith, noFreePreviews, testFolder } from '../support/stores.ts';

const crashing = unless(postgresMissing, test.serial);

let server: Postgres;
test.before(async () => {
  if (!postgresMissing) server = await startPostgres();
});
test.after.always(() => server?.remove());

const own = async (t: ExecutionContext) => {
  const url = await server.createDatabase();
  const database = await openPostgres({ url });
  await database.exclusive((sql) => sql.script('CREATE TABLE thing (name TEXT)'));
  t.teardown(() => database.close());
  return { url, database };
};

/** The server crashes and restarts; then others write until every earlier transaction id is reused. */
async function crash(url: string, lastNumber: bigint): Promise<void> {
  await server.kill();
  await server.start();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (let number = 0n; number <= lastNumber; ) {
    const { rows } = await client.query(
      "INSERT INTO thing VALUES ('other') RETURNING pg_current_xact_id()::text AS id",
    );
    number = BigInt(rows[0].id);
  }
  await client.end();
}

const numberOf = (sql: { get<Row>(text: string): Promise<Row | undefined> }) =>
  sql.get<{ id: string }>('SELECT pg_current_xact_id()::text AS id').then((found) => BigInt(found?.id ?? 0));

crashing('a transaction that a crash undid is not taken for another that has its number', async (t) => {
  const { url, database } = await own(t);
  const error = await t.throwsAsync(
    database.transaction(async (sql) => {
      await sql.run("INSERT INTO thing VALUES ('mine')");
      await crash(url, await numberOf(sql));
    }),
    { code: 'STORE_UNAVAILABLE' },
  );
  t.true(error?.cause instanceof InDoubt);
  t.deepEqual(await database.all("SELECT name FROM thing WHERE name = 'mine'"), []);
});

crashing('an orderly restart leaves no doubt: it is run again', async (t) => {
  const { database } = await own(t);
  let runs = 0;
  await database.transaction(async (sql) => {
    await sql.run("INSERT INTO thing VALUES ('mine')");
    if (++runs === 1) await server.restart();
  });
  t.is(runs, 2);
  t.is((await database.all("SELECT name FROM thing WHERE name = 'mine'")).length, 1);
});

crashing('what a reservation in doubt may have set aside is free after the next sweep', async (t) => {
  const url = await server.createDatabase();
  const stores = await openStores({
    dataDir: testFolder(t),
    databaseUrl: url,
    billing: noFreePreviews,
  });
  t.teardown(() => stores.close());
  const account = await accountWith(stores, 10);
  // As if its COMMIT was written, and the crash came before the answer.
  const transaction = stores.database.transaction.bind(stores.database);
  const requestId = randomUUID();
  stores.database.transaction = async (work) => {
    await transaction(work);
    stores.database.transaction = transaction;
    throw new StoreError('STORE_UNAVAILABLE', 'gone.', { cause: new InDoubt('crashed during COMMIT') });
  };
  await t.throwsAsync(stores.ledger.reserve(account, { requestId, size: 'full' }), {
    code: 'STORE_UNAVAILABLE',
  });
  t.is(await stores.ledger.openReservations(), 1);
  await stores.ledger.sweep();
  t.is(await stores.ledger.openReservations(), 0);
  t.is((await stores.ledger.balance(account)).credits, credits(10));
  t.deepEqual(await stores.ledger.verify(), []);
});
