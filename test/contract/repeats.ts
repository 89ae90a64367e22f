import type { ExecutionContext, TestFn } from 'ava';
import { credits, quarters, standardBilling } from '../../src/billing/price.ts';
import type { RepeatNames, Reservation, ReserveRequest } from '../../src/billing/reservation.ts';
import {
  accountWith,
  type NewPlace,
  noFreePreviews,
  type TestBooks,
  testBooks,
  testServer,
} from '../support/books.ts';

const forMs = 600_000;
const named = (content: string, key?: string): RepeatNames => ({ content, key, forMs });

/** What was charged for is not charged for again, although nobody has the result any more. */
export function testRepeatsContract(test: TestFn, newPlace: NewPlace): void {
  async function start(t: ExecutionContext, billing = noFreePreviews) {
    const books = await testBooks(t, billing, newPlace);
    const account = await accountWith(books, 10);
    const reserve = (repeat: RepeatNames, size: ReserveRequest['size'] = 'full'): Promise<Reservation> =>
      reserveIn(books, account, repeat, size);
    const balance = async () => (await books.ledger.balance(account)).credits;
    return { books, account, reserve, balance };
  }

  async function reserveIn(
    books: Pick<TestBooks, 'ledger'>,
    account: string,
    repeat: RepeatNames,
    size: ReserveRequest['size'],
  ): Promise<Reservation> {
    const request: ReserveRequest =
      size === 'auto' ? { size, pixels: 9e6, requestId: 'r', repeat } : { size, requestId: 'r', repeat };
    const outcome = await books.ledger.reserve(account, request);
    if (outcome.outcome !== 'reserved') throw new Error('insufficient');
    return outcome.reservation;
  }

  test('repeats: the same work costs nothing for as long as results are kept, and the statement says so', async (t) => {
    const { books, account, reserve, balance } = await start(t);
    const first = await reserve(named('a'));
    t.is(await first.settle(), credits(1));
    const again = await reserve(named('a'));
    t.deepEqual([again.tier, again.payment, again.charge], ['full', 'full', quarters(0)]);
    t.is(await again.settle('pending'), quarters(0));
    await again.delivered();
    t.is(await balance(), credits(9));
    const told = (await books.ledger.statement(account)).find(({ id }) => id === again.id);
    t.like(told, { kind: 'reserve', amount: quarters(0), reservationId: first.id, note: 'repeat' });
    t.is((await books.ledger.usage())[0]?.calls, 1, 'a repeat is no call of its own');
    books.clock.forward(forMs);
    t.is((await reserve(named('a'))).charge, credits(1));
    t.deepEqual(await books.ledger.verify(), []);
  });

  test('repeats: other work, other accounts and work that was not charged cost what they cost', async (t) => {
    const { books, account, reserve } = await start(t);
    await (await reserve(named('a'))).settle();
    t.is((await reserve(named('b'))).charge, credits(1));
    const other = await accountWith(books, 1);
    t.is((await reserveIn(books, other, named('a'), 'full')).charge, credits(1));
    await (await reserve(named('c'))).release();
    t.is((await reserve(named('c'))).charge, credits(1), 'released');
    const given = await reserve(named('d'));
    await given.settle();
    t.true(await books.ledger.refund(account, given.id));
    t.is((await reserve(named('d'))).charge, credits(1), 'given back');
  });

  test('repeats: the sweep forgets what ran out', async (t) => {
    const { books, reserve } = await start(t);
    await (await reserve(named('a', 'k'))).settle();
    const kept = async () => (await books.database.all('SELECT name FROM repeat')).length;
    await books.ledger.sweep();
    t.is(await kept(), 2);
    books.clock.forward(forMs);
    await books.ledger.sweep();
    t.is(await kept(), 0);
  });

  test('repeats: a free preview is not taken twice', async (t) => {
    const { books, account, reserve } = await start(t, standardBilling);
    t.is((await (await reserve(named('a'), 'preview')).settle()) as number, 0);
    await (await reserve(named('a'), 'preview')).settle();
    t.is((await books.ledger.balance(account)).freeCalls, 49);
    t.deepEqual(await books.ledger.verify(), []);
  });

  test('repeats: auto is what it was, whatever is left by now', async (t) => {
    const { books, account, reserve } = await start(t);
    await (await reserve(named('a'), 'auto')).settle();
    await books.ledger.post(account, { kind: 'adjust', amount: credits(-9) });
    const again = await reserve(named('a'), 'auto');
    t.deepEqual([again.tier, again.charge], ['full', quarters(0)]);
  });

  test('repeats: a key opens other work once, and never more than was paid for', async (t) => {
    const { reserve } = await start(t);
    await (await reserve(named('a', 'k'), 'preview')).settle();
    t.is((await reserve(named('b', 'k'), 'full')).charge, credits(1), 'a preview was paid for');
    await (await reserve(named('c', 'k'), 'preview')).settle();
    t.is((await reserve(named('d', 'k'), 'preview')).charge, credits(0.25), 'the key was used for c');
    t.is((await reserve(named('c', 'k'), 'preview')).charge, quarters(0));
    t.is((await reserve(named('a', 'x'), 'preview')).charge, quarters(0));
  });

  test('repeats: a charge whose answer was not out goes over to the repeat', async (t) => {
    const { books, account, reserve, balance } = await start(t);
    const first = await reserve(named('a'));
    await first.settle('pending');
    // Its server is gone, though nobody knows yet; the client asks another one.
    const again = await reserve(named('a'));
    await again.settle('pending');
    await again.delivered();
    t.is(await books.ledger.recover(), 0, 'nothing is left to be given back');
    t.is(await balance(), credits(9));
    t.deepEqual(
      (await books.ledger.statement(account)).filter(({ kind }) => kind === 'refund'),
      [],
    );
    t.deepEqual(await books.ledger.verify(), []);
  });

  test('repeats: a charge that went over is given back with the repeat that fails', async (t) => {
    for (const how of ['release', 'recover'] as const) {
      const { books, account, reserve, balance } = await start(t, standardBilling);
      for (const size of ['full', 'preview'] as const) {
        const first = await reserve(named(size), size);
        await first.settle('pending');
        const again = await reserve(named(size), size);
        if (how === 'release') await again.release();
        else await again.settle('pending');
      }
      if (how === 'recover') t.is(await books.ledger.recover(), 2);
      t.deepEqual(await books.ledger.balance(account), { credits: credits(10), freeCalls: 50 }, how);
      t.is(await balance(), credits(10));
      t.is(await books.ledger.openReservations(), 0);
      t.is((await reserve(named('full'))).charge, credits(1));
      t.deepEqual(await books.ledger.verify(), []);
    }
  });

  test('repeats: an answer that was out after all stays charged', async (t) => {
    const { reserve, balance, books } = await start(t);
    const first = await reserve(named('a'));
    await first.settle('pending');
    const second = await reserve(named('a'));
    const third = await reserve(named('a'));
    await second.settle('pending');
    await second.delivered();
    await third.release();
    t.is(await balance(), credits(9));
    await first.delivered();
    t.deepEqual(await books.ledger.verify(), []);
  });

  test('repeats: they are remembered over a restart', async (t) => {
    const { books, account, reserve } = await start(t);
    await (await reserve(named('a'))).settle();
    await books.close();
    const server = await testServer(t, books, { billing: noFreePreviews, clock: books.clock });
    t.is((await reserveIn(server, account, named('a'), 'full')).charge, quarters(0));
  });
}
