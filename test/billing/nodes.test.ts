import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { Command } from 'commander';
import { hashKey } from '../../src/accounts/keyFormat.ts';
import { SignIns } from '../../src/accounts/signIns.ts';
import { credits } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import { accountsCommands } from '../../src/cli/accounts.ts';
import { openImprove } from '../../src/improve/improve.ts';
import { StoreError } from '../../src/store/error.ts';
import { unless } from '../fixtures/leftOut.ts';
import { postgresMissing, postgresPlace, removePostgres, startPostgres } from '../fixtures/postgres.ts';
import { eventually } from '../fixtures/service.ts';
import {
  accountWith,
  noFreePreviews,
  TestClock,
  testFolder,
  testServer,
  testStores,
} from '../support/stores.ts';

const shared = unless(postgresMissing, test.serial);
test.after.always(removePostgres);

const worker = fileURLToPath(new URL('./nodeWorker.js', import.meta.url));
const leaseMs = 3000;

function startWorker(t: ExecutionContext, ...args: string[]): { child: ChildProcess; said: Promise<string> } {
  const child = spawn(process.execPath, [worker, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => void child.kill('SIGKILL'));
  const said = once(createInterface({ input: child.stdout }), 'line').then(([line]) => String(line));
  return { child, said };
}

const start = async (t: ExecutionContext, amount: number) => {
  const stores = await testStores(t, noFreePreviews, postgresPlace);
  const account = await accountWith(stores, amount);
  return { stores, account, url: stores.databaseUrl ?? '' };
};

shared('two processes that charge one account at the same time charge what was there, exactly', async (t) => {
  t.timeout(60_000);
  const { stores, account, url } = await start(t, 50);
  const workers = [0, 1].map(() => startWorker(t, url, account, 'charge'));
  const charged = await Promise.all(workers.map(({ said }) => said));
  await Promise.all(workers.map(({ child }) => child.exitCode === null && once(child, 'exit')));
  t.log(`charged ${charged.join(' and ')} quarters`);
  t.is(
    charged.reduce((sum, one) => sum + Number(one), 0),
    credits(50) as number,
  );
  t.true(charged.every((one) => Number(one) > 0));
  t.is((await stores.ledger.balance(account)).credits as number, 0);
  t.is(await stores.ledger.openReservations(), 0);
  t.deepEqual(await stores.ledger.verify(), []);
  t.deepEqual(await stores.database.all('SELECT id FROM node'), [], 'who ends says goodbye');
});

shared('what a killed node left is given back by the others, what a living one has is not', async (t) => {
  t.timeout(60_000);
  const { stores, account, url } = await start(t, 10);
  const clock = new TestClock(new Date().toISOString());
  const living = await testServer(t, stores, { billing: noFreePreviews, leaseMs, clock });
  const kept = await living.ledger.reserve(account, { size: 'full', requestId: 'living' });
  const { child, said } = startWorker(t, url, account, 'hang', String(leaseMs));
  await said;
  t.is(await stores.ledger.openReservations(), 3);
  await sleep(leaseMs * 1.5);
  t.is(await stores.ledger.openReservations(), 3, 'nothing of the living');
  child.kill('SIGKILL');
  const killed = performance.now();
  // A second node judges at the same time: refunded once all the same.
  const other = await testServer(t, stores, { billing: noFreePreviews, leaseMs, clock });
  await eventually(async () => (await stores.ledger.openReservations()) === 1);
  t.log(`given back ${((performance.now() - killed) / leaseMs).toFixed(1)} leases after the kill`);
  t.is((await stores.ledger.balance(account)).credits, credits(9));
  await sleep(leaseMs);
  const ends = (await stores.ledger.statement(account)).filter(({ note }) => note === 'server stopped');
  t.deepEqual(ends.map(({ kind }) => kind).sort(), ['refund', 'release']);
  t.is((await kept.settle()).charged, credits(1));
  t.is((await stores.ledger.balance(account)).credits, credits(9));
  t.deepEqual(await stores.ledger.verify(), []);
  await other.close();
});

shared('a node that was without the database gives the others time to say that they live', async (t) => {
  t.timeout(60_000);
  const { stores, account } = await start(t, 10);
  const living = await testServer(t, stores, { billing: noFreePreviews, leaseMs: 60_000 });
  await living.ledger.reserve(account, { size: 'full', requestId: 'living' });
  // As after a night without the database: all leases have expired, and one node starts first.
  await stores.database.run('UPDATE node SET expires_at = 0');
  const first = await testServer(t, stores, { billing: noFreePreviews, leaseMs: 60_000 });
  t.is(first.recovered, 0);
  t.is(await stores.ledger.openReservations(), 1);
});

shared('a revoked key and a changed balance count on every node at once', async (t) => {
  const { stores, account } = await start(t, 1);
  const [one, other] = [await testServer(t, stores), await testServer(t, stores)];
  const { id, key } = await one.accounts.createKey(account);
  t.is((await other.accounts.authenticate(hashKey(key)))?.id, account);
  await one.accounts.revokeKey(id);
  t.is(await other.accounts.authenticate(hashKey(key)), undefined);
  await one.ledger.post(account, { kind: 'grant', amount: credits(2) });
  t.is((await other.ledger.balance(account)).credits, credits(3));
});

shared('two nodes that meet a person for the first time make one account', async (t) => {
  const { stores } = await start(t, 0);
  const nodes = [await testServer(t, stores), await testServer(t, stores)];
  const person = { issuer: 'https://id.example', subject: '7', name: 'Zoë', email: null };
  const met = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      new SignIns(nodes[i % 2]?.database ?? stores.database, Date.now).accountOf(person),
    ),
  );
  t.is(new Set(met.map(({ account }) => account.id)).size, 1);
  t.is(met.filter(({ created }) => created).length, 1);
  t.is((await stores.ledger.listBalances()).length, 2);
});

shared('a one-time link opens once, whichever nodes it is brought to', async (t) => {
  const { stores, account } = await start(t, 0);
  const nodes = [await testServer(t, stores), await testServer(t, stores)];
  const token = await new SignIns(stores.database, Date.now).createLink(account);
  const opened = await Promise.all(
    nodes.map(({ database }) => new SignIns(database, Date.now).takeLink(token)),
  );
  t.deepEqual(
    opened.filter((each) => each !== undefined).map(({ id }) => id),
    [account],
  );
});

shared('the images of a day are counted over all nodes', async (t) => {
  const { stores, account } = await start(t, 0);
  const nodes = [await testServer(t, stores), await testServer(t, stores)];
  const folder = testFolder(t);
  const improves = nodes.map(({ database }) => openImprove({ database, perDay: 10, folder, s3: undefined }));
  const image = { accountId: account, bytes: Buffer.from('x'), type: 'jpg', width: 1, height: 1 };
  const outcomes = await Promise.allSettled(
    improves.flatMap((improve) => Array.from({ length: 15 }, () => improve.handIn(image))),
  );
  t.is(outcomes.filter(({ status }) => status === 'fulfilled').length, 10);
  t.is((await improves[0]?.list({ accountId: account, to: Date.now() + 1 }))?.length, 10);
});

shared('commands work on PostgreSQL as on SQLite', async (t) => {
  const { stores } = await start(t, 0);
  const open = () => openStores({ ...stores, billing: noFreePreviews, now: stores.clock.now });
  const run = async (...args: string[]) => {
    let printed = '';
    const program = new Command().exitOverride();
    for (const command of accountsCommands({ open, out: { write: (text: string) => (printed += text) } }))
      program.addCommand(command.exitOverride());
    await program.parseAsync(args, { from: 'user' });
    return printed;
  };
  const [, id = '', key = ''] =
    /^account (acc_\w+)\nkey {5}(cutout_\w+)\n$/.exec(
      await run('accounts', 'create', 'Ada', '--credits', '10'),
    ) ?? [];
  t.is((await stores.accounts.authenticate(hashKey(key)))?.id, id);
  t.is(await run('credits', 'grant', 'Ada', '0.75'), `Done: the balance of ${id} is 10.75.\n`);
  const reservation = await stores.ledger.reserve(id, { size: 'full', requestId: 'r' });
  await reservation.settle();
  t.is(
    await run('usage', '--format', 'csv'),
    `day,account,payment,calls,credits,to_review\r\n2026-11-21,${id},full,1,1,0\r\n`,
  );
  const number = String(reservation.id);
  t.is(await run('credits', 'refund', 'Ada', number), `Done: the balance of ${id} is 10.75.\n`);
  t.is(JSON.parse(await run('credits', 'statement', 'Ada', '--format', 'json')).length, 5);
  t.is(JSON.parse(await run('accounts', 'list', '--format', 'json')).length, 2);
  t.regex(await run('keys', 'list', 'Ada'), /^ID +PREFIX +LABEL/);
  t.is(await run('credits', 'verify'), 'The ledger is consistent.\n');
});

shared(
  'PostgreSQL stopped, killed and started again under load: nothing is lost or charged twice',
  async (t) => {
    t.timeout(110_000);
    const postgres = await startPostgres();
    t.teardown(() => postgres.remove());
    const place = { dataDir: testFolder(t), databaseUrl: await postgres.createDatabase() };
    const stores = await testServer(t, place, { billing: noFreePreviews, onError: () => {} });
    const account = await accountWith(stores, 1000);
    let [charged, refused, working, released] = [0, 0, true, 0];
    const isUnavailable = (error: unknown) =>
      error instanceof StoreError && error.code === 'STORE_UNAVAILABLE';

    const lane = async (number: number) => {
      for (let i = 0; working; i++) {
        try {
          const reservation = await stores.ledger.reserve(account, {
            size: 'preview',
            requestId: `${number}.${i}`,
          });
          try {
            if (i % 3 === 0) throw new Error('the work failed');
            const amount = (await reservation.settle()).charged;
            charged += amount;
            await reservation.deliver();
          } catch (error) {
            // As admission does: any failure releases the reservation.
            await reservation.release();
            released++;
            if (isUnavailable(error)) throw error;
          }
        } catch (error) {
          if (!isUnavailable(error)) throw error;
          refused++;
        }
      }
    };
    const lanes = Promise.all(Array.from({ length: 12 }, (_, number) => lane(number)));
    const goesOn = async () => {
      const [paid, given] = [charged, released];
      await eventually(() => charged > paid + 5 && released > given + 3);
    };
    for (const end of [postgres.stop, postgres.kill, postgres.stop]) {
      await goesOn();
      await end();
      await sleep(end === postgres.kill ? 6000 : 300);
      await postgres.start();
    }
    await goesOn();
    working = false;
    await lanes;
    await stores.ledger.sweep();

    t.log(`${charged} charged, ${released} given back, ${refused} refused`);
    t.true(charged > 20 && released > 10 && refused > 0);
    t.is(await stores.ledger.openReservations(), 0, 'recovery needs nobody');
    t.is((await stores.ledger.balance(account)).credits as number, (credits(1000) as number) - charged);
    t.deepEqual(await stores.ledger.verify(), []);
  },
);
