import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Command } from 'commander';
import { hashKey } from '../../src/accounts/keyFormat.ts';
import { SignIns } from '../../src/accounts/signIns.ts';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import { storeCommands } from '../../src/cli/store.ts';
import { migrations } from '../../src/store/migrations.ts';
import { sharedSecret } from '../../src/store/secretTable.ts';
import { lockFolder } from '../../src/store/sqlite.ts';
import { leaveOut } from '../fixtures/leftOut.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';
import { type NewPlace, type Place, sqlitePlace, testFolder } from '../support/stores.ts';

test.after.always(removePostgres);

const open = (place: Place) => openStores({ ...place, billing: standardBilling });

async function run(place: Place, ...args: string[]): Promise<string> {
  let printed = '';
  const out = { write: (text: string) => (printed += text) };
  const program = new Command().exitOverride();
  for (const command of storeCommands({ ...place }, out)) {
    program.addCommand(command.exitOverride());
  }
  await program.parseAsync(args, { from: 'user' });
  return printed;
}

/** A database with rows in every table: more entries than one page, some of them open. */
async function fill(place: Place): Promise<void> {
  const stores = await open(place);
  const { accounts, ledger, database } = stores;
  const zoe = { issuer: 'https://id.example', subject: 'ö', name: 'Zoë "🐈"', email: 'zoe@example.com' };
  // Deleted and returned.
  await accounts.erase((await new SignIns(database, Date.now).accountOf(zoe)).account.id);
  await new SignIns(database, Date.now).accountOf(zoe);
  for (const name of ['Ada', 'Bob']) {
    const { id } = await accounts.create(name);
    const { key } = await accounts.createKey(id, 'laptop');
    await accounts.authenticate(hashKey(key));
    await ledger.post(id, { kind: 'grant', amount: credits(100), reference: 'first' });
    for (let i = 0; i < 60; i++) {
      const reservation = await ledger.reserve(id, {
        size: i % 3 === 0 ? 'preview' : 'full',
        requestId: `r${i}`,
        repeat: { content: `c${i}`, forMs: 600_000 },
      });
      if (i % 5 === 0) await reservation.release();
      else if (i % 7 !== 0) await reservation.settle();
      if (i % 2 === 1) await reservation.deliver();
      if (i === 11) await ledger.refund(id, reservation.id, 'by hand');
    }
    await new SignIns(database, Date.now).createLink(id);
    await stores.audit.write({ action: 'account.create', subject: id });
    await database.run(
      `INSERT INTO improve_image (id, account_id, at, object, stored, type, bytes, width, height, sha256)
       VALUES (@id, @id, 0, @id, 1, 'jpg', 1, 1, 1, '')`,
      { id },
    );
  }
  await sharedSecret(database, 'test');
  await stores.close();
}

const tables = [
  'answer',
  'account',
  'api_key',
  'audit',
  'console_link',
  'deleted_account',
  'entry',
  'former_account',
  'free_use',
  'identity',
  'improve_image',
  'repeat',
  'secret',
];

/** Every row, as text. */
async function everything(place: Place): Promise<Record<string, string[]>> {
  const stores = await open(place);
  const all: Record<string, string[]> = {};
  for (const table of tables) {
    const rows = await stores.database.all<object>(`SELECT * FROM ${table}`);
    if (rows.length === 0) throw new Error(`${table} is empty: the test proves nothing of it.`);
    all[table] = rows.map((row) => JSON.stringify(Object.fromEntries(Object.entries(row).sort()))).sort();
  }
  const wrong = await stores.ledger.verify();
  await stores.close();
  if (wrong.length > 0) throw new Error(wrong.join('\n'));
  return all;
}

/** New rows are numbered after the restored ones. */
async function goesOn(t: ExecutionContext, place: Place): Promise<void> {
  const stores = await open(place);
  const account = (await stores.ledger.listBalances()).at(-1);
  const id = account?.id ?? '';
  t.is((await stores.ledger.post(id, { kind: 'grant', amount: credits(1) })).outcome, 'posted');
  await stores.audit.write({ action: 'credits.grant', subject: id });
  t.deepEqual(await stores.ledger.verify(), []);
  await stores.close();
}

const sums = /^4 accounts, \d{3} entries, [\d.]+ credits /;

const kinds: readonly (readonly [string, NewPlace])[] = [
  ['SQLite', sqlitePlace],
  ...(postgresMissing ? [] : [['PostgreSQL', postgresPlace] as const]),
];
if (postgresMissing) leaveOut('backups of and to PostgreSQL', postgresMissing);

for (const [from, fromPlace] of kinds) {
  for (const [to, toPlace] of kinds) {
    test(`a backup of ${from} restored in ${to} is equal and can be used`, async (t) => {
      const source = await fromPlace(t);
      await fill(source);
      const file = path.join(testFolder(t), 'backups', 'books.db');
      mkdirSync(path.dirname(file));
      const said = await run(source, 'backup', file);
      t.regex(said, sums);
      t.is(statSync(file).mode & 0o777, 0o600);
      t.deepEqual(readdirSync(path.dirname(file)), ['books.db']);

      const target = await toPlace(t);
      const restored = await run(target, 'restore', file);
      t.is(restored.split(' were ')[0], said.split(' are ')[0]);
      t.deepEqual(await everything(target), await everything(source));
      await goesOn(t, target);
      t.deepEqual(readdirSync(path.dirname(file)), ['books.db'], 'only read');
    });
  }
}

test('the database of another installation is moved from its file, unless a server uses it', async (t) => {
  const source = await sqlitePlace(t);
  await fill(source);
  const file = path.join(source.dataDir, 'books.db');
  const lock = lockFolder(source.dataDir);
  const target = await (kinds.at(-1)?.[1] ?? sqlitePlace)(t);
  await t.throwsAsync(run(target, 'restore', file), { code: 'STORE_IN_USE' });
  lock.release();
  await run(target, 'restore', file);
  t.deepEqual(await everything(target), await everything(source));
});

test('a database that is not empty is not filled, and an existing file is not overwritten', async (t) => {
  for (const [, newPlace] of kinds) {
    const place = await newPlace(t);
    await fill(place);
    const before = await everything(place);
    const file = path.join(testFolder(t), 'copy');
    await run(place, 'backup', file);
    await t.throwsAsync(run(place, 'restore', file), { code: 'STORE_NOT_EMPTY', message: /account already/ });
    await t.throwsAsync(run(place, 'backup', file), { code: 'STORE_FILE', message: /already exists/ });
    t.deepEqual(await everything(place), before);
  }
});

test('an unreadable backup leaves nothing behind', async (t) => {
  const folder = testFolder(t);
  writeFileSync(path.join(folder, 'text'), 'not a database, but long enough to look at');
  for (const name of ['text', 'nothing']) {
    const place = await sqlitePlace(t);
    await t.throwsAsync(run(place, 'restore', path.join(folder, name)), { code: 'STORE_FILE' });
    t.false(existsSync(path.join(place.dataDir, 'books.db')));
  }
  t.deepEqual(readdirSync(folder), ['text']);
});

test('a backup taken while the database is in use is a consistent snapshot', async (t) => {
  for (const [, newPlace] of kinds) {
    const place = await newPlace(t);
    const stores = await open(place);
    const accounts = await Promise.all(['a', 'b'].map((name) => stores.accounts.create(name)));
    let stop = false;
    const busy = Promise.all(
      accounts.map(async ({ id }) => {
        for (; !stop; await turn()) await stores.ledger.post(id, { kind: 'grant', amount: credits(1) });
      }),
    );
    const copy = path.join(testFolder(t), 'books.db');
    await run(place, 'backup', copy);
    stop = true;
    await busy;
    const folder = testFolder(t);
    cpSync(copy, path.join(folder, 'books.db'));
    const kept = await open({ dataDir: folder });
    t.deepEqual(await kept.ledger.verify(), []);
    await kept.close();
    await stores.close();
  }
});

test('migrate reports what it did', async (t) => {
  for (const [, newPlace] of kinds) {
    const place = await newPlace(t);
    t.regex(
      await run(place, 'migrate'),
      new RegExp(` is at version ${migrations.length}; it was at 0\\.\n$`),
    );
    t.regex(await run(place, 'migrate'), /it was up to date\.\n$/);
  }
});

test('a backup contains no key', async (t) => {
  const place = await sqlitePlace(t);
  const stores = await open(place);
  const { key } = await stores.accounts.createKey((await stores.accounts.create('Ada')).id);
  await stores.close();
  const file = path.join(testFolder(t), 'copy');
  await run(place, 'backup', file);
  t.false(readFileSync(file).includes(key.slice('cutout_'.length + 4)));
});

test('a backup into a folder that does not exist is refused, and the folder is not made', async (t) => {
  const place = await sqlitePlace(t);
  const folder = path.join(testFolder(t), 'missing');
  await t.throwsAsync(run(place, 'backup', path.join(folder, 'x.db')), {
    code: 'STORE_FILE',
    message: `The folder ${folder} does not exist.`,
  });
  t.false(existsSync(folder));
});
