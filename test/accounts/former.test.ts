import test from 'ava';
import { SignIns } from '../../src/accounts/signIns.ts';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { ImproveTable } from '../../src/store/improveTable.ts';
import { eventually } from '../fixtures/eventually.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';
import { type NewPlace, sqlitePlace, testStores } from '../support/stores.ts';

const billing = { ...standardBilling, freePreviews: { perMonth: 5, perDay: 3 } };
const ann = {
  issuer: 'https://a.test',
  subject: 'subject-of-ann',
  name: 'Ann Other',
  email: 'ann@people.test',
};

function testFormer(name: string, place: NewPlace): void {
  test(`${name}: a returning person keeps the remaining free previews and gets no second sign-up credits`, async (t) => {
    const stores = await testStores(t, billing, place);
    const { accounts, ledger, clock, database } = stores;
    const signIns = new SignIns(database, clock.now);
    const comeBack = async (person = ann) => {
      const { account, created } = await signIns.accountOf(person);
      const given = await ledger.wasGiven(account.id, 'first-sign-in');
      if (!given)
        await ledger.post(account.id, { kind: 'grant', amount: credits(5), reference: 'first-sign-in' });
      return { id: account.id, created, given };
    };
    let requests = 0;
    const preview = async (id: string) => {
      const reservation = await ledger.reserve(id, { requestId: `r${requests++}`, size: 'preview' });
      await reservation.settle();
      return reservation.payment;
    };

    const first = await comeBack();
    t.like(first, { created: true, given: false });
    t.deepEqual([await preview(first.id), await preview(first.id)], ['free', 'free']);
    // In progress while the account is deleted.
    const under = await ledger.reserve(first.id, { requestId: 'under way', size: 'preview' });
    await accounts.erase(first.id);
    await accounts.erase(first.id);

    const second = await comeBack();
    t.like(second, { created: true, given: true });
    t.not(second.id, first.id);
    t.deepEqual(await ledger.balance(second.id), { credits: credits(0), freeCalls: 2 });
    t.deepEqual(await ledger.freePreviews(second.id), { leftToday: 0, leftThisMonth: 2 });
    await t.throwsAsync(preview(second.id), { code: 'insufficient_credits' });
    await under.release();
    t.deepEqual(await ledger.freePreviews(second.id), { leftToday: 1, leftThisMonth: 3 });
    t.is(await preview(second.id), 'free');
    await t.throwsAsync(preview(second.id), { code: 'insufficient_credits' });

    // A second time, and on another day: all earlier accounts count.
    await accounts.erase(second.id);
    clock.set('2026-11-22T12:00:00Z');
    const third = await comeBack();
    t.true(third.given);
    t.deepEqual(await ledger.freePreviews(third.id), { leftToday: 2, leftThisMonth: 2 });
    clock.set('2026-12-01T12:00:00Z');
    t.deepEqual(await ledger.freePreviews(third.id), { leftToday: 3, leftThisMonth: 5 });

    t.like(await comeBack({ ...ann, subject: 'subject-of-bob' }), { created: true, given: false });
    t.like(await comeBack({ ...ann, issuer: 'https://b.test' }), { created: true, given: false });
    t.like(await comeBack(), { id: third.id, created: false, given: true });
    t.deepEqual(await ledger.verify(), []);
  });

  test(`${name}: what is kept of deleted accounts reveals nothing without the key`, async (t) => {
    const stores = await testStores(t, billing, place);
    const { accounts, clock, database } = stores;
    const { account } = await new SignIns(database, clock.now).accountOf(ann);
    await accounts.erase(account.id);
    const rows = await database.all<{ person: Uint8Array }>('SELECT * FROM deleted_account');
    t.is(rows.length, 1);
    t.is(rows[0]?.person.length, 32);
    for (const table of ['account', 'identity', 'deleted_account', 'former_account', 'audit', 'entry']) {
      const text = JSON.stringify(await database.all(`SELECT * FROM ${table}`));
      for (const personal of [ann.subject, ann.name, ann.email, ann.issuer]) t.false(text.includes(personal));
    }
    // Another database gives the same person another pseudonym.
    const others = await testStores(t, billing, place);
    const there = await new SignIns(others.database, clock.now).accountOf(ann);
    await others.accounts.erase(there.account.id);
    const [other] = await others.database.all<{ person: Uint8Array }>('SELECT * FROM deleted_account');
    t.notDeepEqual(Buffer.from(other?.person ?? []), Buffer.from(rows[0]?.person ?? []));
  });
}

testFormer('SQLite', sqlitePlace);
if (postgresMissing) test.skip(postgresMissing, () => {});
else {
  testFormer('PostgreSQL', postgresPlace);

  test('PostgreSQL: transactions during a deletion find the account deleted and write nothing to it', async (t) => {
    const { accounts, database, clock } = await testStores(t, billing, postgresPlace);
    const signIns = new SignIns(database, clock.now);
    const improve = new ImproveTable(database);
    const { account } = await signIns.accountOf(ann);
    const image = { accountId: account.id, at: 1, type: 'jpg', bytes: 1, width: 1, height: 1, sha256: '' };
    const row = (id: string) => ({ ...image, id, object: id, filename: null, tag: null });
    t.is(await improve.insertPending(row('before'), 0, 9), 'inserted');
    const waiting = async () => {
      const found = await database.get<{ count: number }>(
        `SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return found?.count;
    };
    // All of them wait for one ledger transaction of the account; the deletion is first.
    const begun: Promise<unknown>[] = [];
    const wait = async <T>(work: Promise<T>): Promise<{ done: Promise<T> }> => {
      begun.push(work.catch(() => {}));
      await eventually(async () => (await waiting()) === begun.length);
      return { done: work };
    };
    const { again, key, late, stored } = await database.transaction(async (sql) => {
      await sql.get('SELECT id FROM account WHERE id = @id FOR UPDATE', { id: account.id });
      await wait(accounts.erase(account.id));
      return {
        again: await wait(signIns.accountOf(ann)),
        key: await wait(accounts.createKey(account.id)),
        late: await wait(improve.insertPending(row('after'), 0, 9)),
        stored: await wait(improve.markStored(row('before'))),
      };
    });
    const { account: next, created } = await again.done;
    t.true(created);
    t.not(next.id, account.id);
    await t.throwsAsync(key.done, { code: 'STORE_UNKNOWN_ACCOUNT' });
    t.is(await late.done, 'no account');
    t.false(await stored.done);
    t.like(await accounts.get(account.id), { name: 'deleted account', email: null, deletedAt: clock.at });
    t.like(await accounts.get(next.id), { name: ann.name, email: ann.email, deletedAt: null });
    t.deepEqual(await accounts.keys(account.id), []);
    t.deepEqual(await improve.list({}), []);
  });
  test.after.always(removePostgres);
}
