import test, { type ExecutionContext } from 'ava';
import { Accounts } from '../../src/accounts/accounts.ts';
import type { Entry } from '../../src/billing/entries.ts';
import { Ledger } from '../../src/billing/ledger.ts';
import { credits, standardBilling } from '../../src/billing/price.ts';
import type { Database, Values } from '../../src/store/database.ts';
import { ImproveTable } from '../../src/store/improveTable.ts';
import { migrate } from '../../src/store/migrate.ts';
import { migrations } from '../../src/store/migrations.ts';
import { openDatabase } from '../../src/store/open.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';
import { withStatements } from '../support/database.ts';
import { type NewPlace, sqlitePlace, TestClock } from '../support/stores.ts';

/** The schema before lists had indexes. */
const before = migrations.slice(0, 8);

async function open(t: ExecutionContext, place: NewPlace): Promise<Database> {
  const database = await openDatabase(await place(t));
  t.teardown(() => database.close());
  return database;
}

/** Rows of which some have the same time, as every version wrote them. */
async function fill(database: Database, clock: TestClock): Promise<{ names: string[] }> {
  const accounts = new Accounts(database, clock.now);
  const names = ['Ada', 'Grace', '100 % sure', 'under_score', 'Ärger & Söhne', 'back\\slash', 'Ada again'];
  for (const [index, name] of names.entries()) {
    const { id } = await accounts.create(name, `acc_${index}`, index === 0 ? 'Ada@Example.test' : null);
    const grant = { id, at: clock.at, amount: credits(index + 1) };
    await database.run(
      `INSERT INTO entry (account_id, at, kind, amount, balance) VALUES (@id, @at, 'grant', @amount, @amount)`,
      grant,
    );
    await database.run('UPDATE account SET balance = @amount WHERE id = @id', {
      id,
      amount: grant.amount,
    });
    if (index % 3 === 2) clock.forward(1);
    for (let image = 0; image < 5; image++)
      await database.run(
        `INSERT INTO improve_image (id, account_id, at, object, stored, type, bytes, width, height, sha256)
         VALUES (@image, @id, @at, @image, @stored, 'png', 1, 1, 1, '')`,
        { image: `${name} ${image}`, id, at: image >> 1, stored: image === 4 ? 0 : 1 },
      );
  }
  return { names };
}

/** Every page of a list, until one is shorter than the limit. */
async function everyPage<Row>(
  limit: number,
  read: (last: Row | undefined) => Promise<readonly Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const page = await read(rows.at(-1));
    rows.push(...page);
    if (page.length < limit) return rows;
  }
}

function testLists(name: string, place: NewPlace): void {
  test(`${name}: a database of the previous version gives the same lists, and its indexes are replaced`, async (t) => {
    const database = await open(t, place);
    const clock = new TestClock();
    await migrate(database, before);
    await fill(database, clock);
    const ledger = new Ledger(database, { billing: standardBilling, now: clock.now });
    const old = await ledger.listBalances();
    const images = await new ImproveTable(database).page(old[0]?.id ?? '', { limit: 9 });
    t.is(images.length, 4);
    t.deepEqual(await migrate(database), { from: 8, to: migrations.length });
    t.deepEqual(await ledger.listBalances(), old);
    t.deepEqual(await new ImproveTable(database).page(old[0]?.id ?? '', { limit: 9 }), images);
    t.deepEqual(await ledger.verify(), []);
  });

  test(`${name}: accounts are listed newest first, each once, whatever the page size`, async (t) => {
    const database = await open(t, place);
    const clock = new TestClock();
    await migrate(database);
    await fill(database, clock);
    const ledger = new Ledger(database, { billing: standardBilling, now: clock.now });
    const all = await ledger.listBalances();
    const key = ({ createdAt, id }: { createdAt: number; id: string }) => [createdAt, id] as const;
    const newestFirst = all.toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
    t.deepEqual(all.map(key), newestFirst.map(key));
    t.true(new Set(all.map(({ createdAt }) => createdAt)).size < all.length, 'some are of the same moment');
    for (const { id, ...rest } of all) t.like({ ...rest }, await ledger.balance(id));
    for (let limit = 1; limit <= 8; limit++)
      t.deepEqual(
        await everyPage<(typeof all)[number]>(limit, (last) =>
          ledger.listBalances({ limit, before: last && { at: last.createdAt, id: last.id } }),
        ),
        all,
      );
  });

  test(`${name}: a statement by kind and time has every entry once, also when the clock was set back`, async (t) => {
    const database = await open(t, place);
    const clock = new TestClock();
    await migrate(database);
    const ledger = new Ledger(database, { billing: standardBilling, now: clock.now });
    const accounts = new Accounts(database, clock.now);
    const [{ id }, other] = [await accounts.create('Ada'), await accounts.create('Grace')];
    const start = clock.at;
    for (let i = 0; i < 40; i++) {
      await ledger.post(i % 5 === 4 ? other.id : id, {
        kind: i % 3 === 0 ? 'grant' : 'adjust',
        amount: credits(1),
      });
      clock.forward([1000, 0, -1500, 2000][i % 4] ?? 0);
    }
    const all = await ledger.statement(id);
    t.true(all.some(({ at }, i) => at < (all[i - 1]?.at ?? 0)));
    const oldestFirst = all.toSorted((a, b) => a.at - b.at || a.id - b.id);
    const spans = [
      {},
      { from: start + 3000 },
      { to: start + 9000 },
      { from: start + 2500, to: start + 9500 },
      { from: start + 3000, to: start + 3000 },
      { from: start + 1e9 },
    ];
    for (const span of spans) {
      const { from = 0, to = Number.POSITIVE_INFINITY } = span;
      const within = oldestFirst.filter(({ at }) => at >= from && at < to);
      for (const limit of [1, 3, 100]) {
        const pages = await everyPage<Entry>(limit, (last) =>
          ledger.statement(id, { ...span, after: last?.id, limit }),
        );
        const idOf = (entry: Entry) => entry.id;
        t.deepEqual(
          pages.map(idOf).toSorted((a, b) => a - b),
          within.map(idOf).toSorted((a, b) => a - b),
        );
        if ('from' in span || 'to' in span) t.deepEqual(pages, within);
        for (const kind of ['grant', 'adjust', 'refund', undefined] as const) {
          const found = await everyPage<Entry>(limit, (last) =>
            ledger.statementNewestFirst(id, { ...span, kind, before: last?.id, limit }),
          );
          const wanted = within.filter((entry) => kind === undefined || entry.kind === kind).toReversed();
          const byNumber = kind === undefined && !('from' in span || 'to' in span);
          t.deepEqual(found, byNumber ? wanted.toSorted((a, b) => b.id - a.id) : wanted);
        }
      }
    }
    const [foreign] = await ledger.statement(other.id);
    for (const unknown of [1e9, foreign?.id]) {
      t.deepEqual(await ledger.statementNewestFirst(id, { before: unknown, kind: 'grant' }), []);
      t.deepEqual(await ledger.statementNewestFirst(id, { before: unknown, from: start }), []);
      t.deepEqual(await ledger.statement(id, { after: unknown, from: start }), []);
    }
  });

  test(`${name}: a search is literal and case-insensitive`, async (t) => {
    const database = await open(t, place);
    const clock = new TestClock();
    await migrate(database);
    const { names } = await fill(database, clock);
    const ledger = new Ledger(database, { billing: standardBilling, now: clock.now });
    const found = async (search: string) =>
      (await ledger.listBalances({ search })).map((account) => account.name).toSorted();
    t.deepEqual(await found(''), names.toSorted());
    t.deepEqual(await found('aDa'), ['Ada', 'Ada again']);
    t.deepEqual(await found('EXAMPLE.'), ['Ada']);
    t.deepEqual(await found('%'), ['100 % sure']);
    t.deepEqual(await found('_s'), ['under_score']);
    t.deepEqual(await found('\\'), ['back\\slash']);
    t.deepEqual(await found('ärGER & sÖ'), ['Ärger & Söhne']);
    t.deepEqual(await found("' OR 1=1 --"), []);
    t.deepEqual(await found('\0'), []);
    t.deepEqual(await found('A\0'), []);
    t.deepEqual(await found('ACC_1'), ['Grace']);
  });

  test(`${name}: submitted images are listed newest first, each once, those of the account only`, async (t) => {
    const database = await open(t, place);
    const clock = new TestClock();
    await migrate(database);
    await fill(database, clock);
    const table = new ImproveTable(database);
    const ledger = new Ledger(database, { billing: standardBilling, now: clock.now });
    const account = (await ledger.listBalances()).at(-1);
    const id = account?.id ?? '';
    for (let limit = 1; limit <= 5; limit++) {
      const rows = await everyPage<{ id: string; at: number }>(limit, (last) =>
        table.page(id, { limit, before: last }),
      );
      t.deepEqual(
        rows.map((row) => row.id),
        [3, 2, 1, 0].map((image) => `${account?.name} ${image}`),
        'hidden ones left out',
      );
    }
  });

  test(`${name}: a page of accounts takes a fixed number of statements, whatever its length`, async (t) => {
    const database = await open(t, place);
    const clock = new TestClock();
    await migrate(database);
    await fill(database, clock);
    let statements = 0;
    const counted = { ...withStatements(database, () => statements++) } as unknown as Database;
    const ledger = new Ledger(counted, { billing: standardBilling });
    const count = async (limit: number) => {
      statements = 0;
      const { length } = await ledger.listBalances({ limit });
      return { length, statements };
    };
    const [one, many] = [await count(1), await count(7)];
    t.is(one.length, 1);
    t.is(many.length, 7);
    t.is(many.statements, one.statements);
  });
}

testLists('SQLite', sqlitePlace);
if (postgresMissing) test.skip(postgresMissing, () => {});
else {
  testLists('PostgreSQL', postgresPlace);
  test.after.always(removePostgres);
}

test('SQLite reads pages in the order of an index', async (t) => {
  const database = await open(t, sqlitePlace);
  await migrate(database);
  const plan = async (text: string) =>
    (await database.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`))
      .map(({ detail }) => detail)
      .join('; ');
  const accounts = await plan(
    'SELECT * FROM account WHERE (created_at, id) < (9, 9) ORDER BY created_at DESC, id DESC LIMIT 1',
  );
  t.regex(accounts, /account_created/);
  t.notRegex(accounts, /TEMP B-TREE/);
  const images = await plan(
    "SELECT * FROM improve_image WHERE account_id = 'a' AND (at, id) < (9, 9) ORDER BY at DESC, id DESC LIMIT 1",
  );
  t.regex(images, /improve_image_account/);
  t.notRegex(images, /TEMP B-TREE/);
});

test('SQLite reads a page of a statement, and nothing else, through an index', async (t) => {
  const database = await open(t, sqlitePlace);
  await migrate(database);
  const texts: { text: string; values: Values }[] = [];
  const seen = new Proxy(database, {
    get(target, name: keyof Database) {
      if (name !== 'all' && name !== 'get') return target[name];
      return (text: string, values: Values = {}) => {
        texts.push({ text, values });
        return target[name](text, values);
      };
    },
  });
  const ledger = new Ledger(seen, { billing: standardBilling });
  const { id } = await new Accounts(database, new TestClock().now).create('Ada');
  const unseen = new Ledger(database, { billing: standardBilling });
  await unseen.post(id, { kind: 'grant', amount: credits(1) });
  const entry = (await unseen.statement(id)).at(-1)?.id;
  const plansOf = async (read: () => Promise<unknown>) => {
    texts.length = 0;
    await read();
    const plans: string[] = [];
    for (const { text, values } of texts)
      for (const { detail } of await database.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`, values))
        plans.push(detail);
    return plans.join('; ');
  };
  for (const [read, index] of [
    [
      () => ledger.statementNewestFirst(id, { limit: 3 }),
      /entry_account \(account_id=\? AND (id|rowid)<\?\)$/,
    ],
    [() => ledger.statementNewestFirst(id, { from: 5, limit: 3 }), /entry_at \(account_id=\? AND .*at/],
    [
      () => ledger.statementNewestFirst(id, { kind: 'grant', limit: 3 }),
      /entry_kind \(account_id=\? AND kind=\? AND .*at/,
    ],
    [
      () => ledger.statementNewestFirst(id, { kind: 'grant', to: 5, before: entry }),
      /entry_kind \(account_id=\? AND kind=\? AND .*at/,
    ],
    [() => ledger.statement(id, { from: 5, limit: 3 }), /entry_at \(account_id=\? AND .*at/],
    [() => ledger.statement(id, { to: 5, after: entry }), /entry_at \(account_id=\? AND .*at/],
  ] as const) {
    const plan = await plansOf(read);
    t.regex(plan, index);
    t.notRegex(plan, /TEMP B-TREE|SCAN/);
  }
});
