import test from 'ava';
import { SignIns } from '../../src/accounts/signIns.ts';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';
import { type NewPlace, sqlitePlace, testBooks } from '../support/books.ts';

const billing = { ...standardBilling, freePreviews: { perMonth: 5, perDay: 3 } };
const ann = {
  issuer: 'https://a.test',
  subject: 'subject-of-ann',
  name: 'Ann Other',
  email: 'ann@people.test',
};

function testFormer(name: string, place: NewPlace): void {
  test(`${name}: who deletes an account and comes back goes on with the free previews and gets no second gift`, async (t) => {
    const books = await testBooks(t, billing, place);
    const { accounts, ledger, clock, database } = books;
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
      const asked = await ledger.reserve(id, { requestId: `r${requests++}`, size: 'preview' });
      if (asked.outcome !== 'reserved') return asked.outcome;
      await asked.reservation.settle();
      return asked.reservation.payment;
    };

    const first = await comeBack();
    t.like(first, { created: true, given: false });
    t.deepEqual([await preview(first.id), await preview(first.id)], ['free', 'free']);
    // Under way while the account is deleted.
    const under = await ledger.reserve(first.id, { requestId: 'under way', size: 'preview' });
    if (under.outcome !== 'reserved') return t.fail();
    await accounts.erase(first.id);
    await accounts.erase(first.id);

    const second = await comeBack();
    t.like(second, { created: true, given: true });
    t.not(second.id, first.id);
    t.deepEqual(await ledger.balance(second.id), { credits: credits(0), freeCalls: 2 });
    t.deepEqual(await ledger.freePreviews(second.id), { leftToday: 0, leftThisMonth: 2 });
    t.is(await preview(second.id), 'insufficient');
    await under.reservation.release();
    t.deepEqual(await ledger.freePreviews(second.id), { leftToday: 1, leftThisMonth: 3 });
    t.is(await preview(second.id), 'free');
    t.is(await preview(second.id), 'insufficient');

    // Once more, and on another day: all accounts before count.
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

  test(`${name}: what is kept of who was there says nothing about them without the key`, async (t) => {
    const books = await testBooks(t, billing, place);
    const { accounts, clock, database } = books;
    const { account } = await new SignIns(database, clock.now).accountOf(ann);
    await accounts.erase(account.id);
    const rows = await database.all<{ person: Uint8Array }>('SELECT * FROM deleted_account');
    t.is(rows.length, 1);
    t.is(rows[0]?.person.length, 32);
    for (const table of ['account', 'identity', 'deleted_account', 'former_account', 'audit', 'entry']) {
      const text = JSON.stringify(await database.all(`SELECT * FROM ${table}`));
      for (const personal of [ann.subject, ann.name, ann.email, ann.issuer]) t.false(text.includes(personal));
    }
    // The same person in other books has another name.
    const others = await testBooks(t, billing, place);
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
  test.after.always(removePostgres);
}
