import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { Ledger } from '../../src/billing/ledger.ts';
import { credits } from '../../src/billing/price.ts';
import { migrate } from '../../src/store/migrate.ts';
import { openStore } from '../../src/store/open.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import { unless } from '../fixtures/leftOut.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';
import { noFreePreviews, testFolder } from '../support/stores.ts';

const shared = unless(postgresMissing);
test.after.always(removePostgres);

const secret = 'a-very-secret-password';

/** The whole text of an error, causes included. */
function allOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return `${error.message} ${error.stack} ${JSON.stringify(error)} ${allOf(error.cause)}`;
}

test('an unreachable database is reported at start in one sentence, without the password', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  const url = `postgres://someone:${secret}@127.0.0.1:${port}/books`;
  const error = await t.throwsAsync(openPostgres({ url, patienceMs: 300 }), { code: 'STORE_OPEN' });
  t.regex(
    error?.message ?? '',
    /^The database 127\.0\.0\.1:\d+\/books cannot be reached: .*ECONNREFUSED.*\. See CUTOUT_DATABASE_URL\.$/,
  );
  t.false(allOf(error).includes(secret));
});

test('a server that accepts connections and never answers does not block a start', async (t) => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const url = `postgres://someone:${secret}@127.0.0.1:${port}/books`;
  const started = performance.now();
  await t.throwsAsync(openPostgres({ url, patienceMs: 500 }), { code: 'STORE_OPEN' });
  t.true(performance.now() - started < 10_000);
});

shared('a missing database is reported at start, without the password', async (t) => {
  const { databaseUrl = '' } = await postgresPlace(t);
  const url = new URL(databaseUrl);
  url.password = secret;
  url.pathname = '/nothing';
  const error = await t.throwsAsync(openPostgres({ url: url.href }), {
    code: 'STORE_OPEN',
    message: /database "nothing" does not exist/,
  });
  t.false(allOf(error).includes(secret));
});

/**
 * A proxy in front of PostgreSQL; `onCommit` decides what happens to a connection that sends COMMIT, `isAway` whether new
 * ones are accepted.
 */
async function proxy(
  t: ExecutionContext,
  databaseUrl: string,
  onCommit: () => 'pass' | 'cut before' | 'cut after',
  isAway = () => false,
): Promise<string> {
  const target = new URL(databaseUrl);
  const server = createServer((client) => {
    if (isAway()) return void client.destroy();
    const upstream = connect(Number(target.port), target.hostname);
    let cut = false;
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end);
    upstream.on('data', (bytes) => {
      // The answer to COMMIT has arrived here, so it is done; it is not passed on.
      if (cut) end();
      else client.write(bytes);
    });
    client.on('data', (bytes) => {
      const what = bytes.includes('COMMIT\0') ? onCommit() : 'pass';
      if (what === 'cut before') return end();
      cut = what === 'cut after';
      upstream.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => void server.close());
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  return url.href;
}

shared('a connection that breaks in COMMIT: whatever was written was written once', async (t) => {
  const { databaseUrl = '' } = await postgresPlace(t);
  const seen = { pass: 0, 'cut before': 0, 'cut after': 0 };
  let faults = false;
  const url = await proxy(t, databaseUrl, () => {
    const dice = Math.random();
    const what = !faults || dice < 0.3 ? 'pass' : dice < 0.65 ? 'cut before' : 'cut after';
    seen[what]++;
    return what;
  });
  const database = await openStore({ dataDir: testFolder(t), databaseUrl: url });
  t.teardown(() => database.close());
  await database.run("INSERT INTO account (id, name, created_at) VALUES ('a', 'A', 0)");
  faults = true;
  const add = async () => {
    await database.transaction(async (sql) => {
      await sql.run("UPDATE account SET balance = balance + 1 WHERE id = 'a'");
      await sql.run("INSERT INTO audit (at, action) VALUES (0, 'added')");
    });
  };
  for (let round = 0; round < 12; round++) await Promise.all([add(), add(), add()]);
  faults = false;
  t.log(seen);
  t.true(seen['cut before'] > 5 && seen['cut after'] > 5);
  t.deepEqual(await database.get("SELECT balance FROM account WHERE id = 'a'"), { balance: 36 });
  t.like(await database.get('SELECT count(*) AS n FROM audit'), { n: 36 });
});

shared(
  'a reservation whose COMMIT nobody answers, and nobody can ask about, is released later',
  async (t) => {
    const { databaseUrl = '' } = await postgresPlace(t);
    let [armed, away] = [false, false];
    const onCommit = () => {
      if (!armed) return 'pass';
      away = true;
      return 'cut after';
    };
    const url = await proxy(t, databaseUrl, onCommit, () => away);
    const database = await openPostgres({ url, patienceMs: 300 });
    await migrate(database);
    t.teardown(() => database.close());
    await database.run("INSERT INTO account (id, name, created_at) VALUES ('a', 'A', 0)");
    const ledger = new Ledger(database, { billing: noFreePreviews });
    await ledger.post('a', { kind: 'grant', amount: credits(1) });
    armed = true;
    await t.throwsAsync(ledger.reserve('a', { size: 'full', requestId: 'r' }), { code: 'STORE_UNAVAILABLE' });
    [armed, away] = [false, false];
    t.is((await ledger.balance('a')).credits, credits(0), 'it was done');
    await ledger.sweep();
    t.is((await ledger.balance('a')).credits, credits(1));
    t.is(await ledger.openReservations(), 0);
    t.deepEqual(await ledger.verify(), []);
  },
);

shared('text that PostgreSQL cannot hold is kept as far as it can', async (t) => {
  const { databaseUrl = '' } = await postgresPlace(t);
  const database = await openStore({ dataDir: testFolder(t), databaseUrl });
  t.teardown(() => database.close());
  await database.run('INSERT INTO account (id, name, created_at) VALUES (@id, @name, 0)', {
    id: 'a',
    name: 'a\0b\ud800c',
  });
  t.deepEqual(await database.get('SELECT name FROM account'), { name: 'a\ufffdb\ufffdc' });
});

shared('a statement that failed and was passed over does not end as if it had been done', async (t) => {
  const { databaseUrl = '' } = await postgresPlace(t);
  const database = await openStore({ dataDir: testFolder(t), databaseUrl });
  t.teardown(() => database.close());
  const passing = database.transaction(async (sql) => {
    await sql.run("INSERT INTO secret (name, value) VALUES ('a', 'a')");
    await sql.run('INSERT INTO nothing (a) VALUES (1)').catch(() => {});
  });
  await t.throwsAsync(passing);
  t.deepEqual(await database.all('SELECT name FROM secret'), []);
});
