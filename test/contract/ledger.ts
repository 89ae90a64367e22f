import type { TestFn } from 'ava';
import { openBooks } from '../../src/billing/books.ts';
import { credits, quarters, standardBilling } from '../../src/billing/price.ts';
import type { Reservation, ReserveRequest } from '../../src/billing/reservation.ts';
import {
  accountWith,
  type NewPlace,
  noFreePreviews,
  type TestBooks,
  testBooks,
  testServer,
} from '../support/books.ts';

const preview = { size: 'preview', requestId: 'r' } as const;
const full = { size: 'full', requestId: 'r' } as const;
const auto = (pixels: number) => ({ size: 'auto', pixels, requestId: 'r' }) as const;

async function reserve(books: TestBooks, account: string, request: ReserveRequest): Promise<Reservation> {
  const outcome = await books.ledger.reserve(account, request);
  if (outcome.outcome !== 'reserved') throw new Error('insufficient');
  return outcome.reservation;
}

const balanceOf = async (books: TestBooks, account: string) => (await books.ledger.balance(account)).credits;

/** What the books must do wherever they lie. Registers its tests with `test`. */
export function testLedgerContract(test: TestFn, newPlace: NewPlace): void {
  test('a reservation takes its credits at once, settling keeps them, releasing gives them back', async (t) => {
    const books = await testBooks(t, noFreePreviews, newPlace);
    const account = await accountWith(books, 10);
    const one = await reserve(books, account, full);
    const other = await reserve(books, account, preview);
    t.deepEqual([one.tier, one.payment, one.charge], ['full', 'full', credits(1)]);
    t.deepEqual([other.tier, other.payment, other.charge], ['preview', 'preview', credits(0.25)]);
    t.is(await balanceOf(books, account), credits(8.75));
    t.is(await one.settle(), credits(1));
    await other.release();
    t.is(await balanceOf(books, account), credits(9));
    t.is(await books.ledger.openReservations(), 0);
    t.deepEqual(
      (await books.ledger.statement(account)).map(({ kind, amount, balance, reservationId }) => [
        kind,
        amount,
        balance,
        reservationId,
      ]),
      [
        ['grant', credits(10), credits(10), null],
        ['reserve', credits(-1), credits(9), null],
        ['reserve', credits(-0.25), credits(8.75), null],
        ['settle', 0, credits(8.75), one.id],
        ['release', credits(0.25), credits(9), other.id],
      ],
    );
    t.deepEqual(await books.ledger.verify(), []);
  });

  test('a reservation ends once, whatever is called how often', async (t) => {
    const books = await testBooks(t, noFreePreviews, newPlace);
    const account = await accountWith(books, 10);
    const settled = await reserve(books, account, full);
    const released = await reserve(books, account, full);
    for (let i = 0; i < 3; i++) {
      t.is(await settled.settle(), credits(1));
      await settled.release();
      await released.release();
      t.is(await released.settle(), quarters(0));
    }
    t.is(await balanceOf(books, account), credits(9));
    t.is((await books.ledger.statement(account)).length, 5);
  });

  test('without enough credits nothing is taken and the caller learns what was needed', async (t) => {
    const books = await testBooks(t, noFreePreviews, newPlace);
    const account = await accountWith(books, 0.75);
    t.deepEqual(await books.ledger.reserve(account, full), {
      outcome: 'insufficient',
      needed: credits(1),
      balance: credits(0.75),
    });
    t.is((await books.ledger.statement(account)).length, 1);
  });

  test('free previews come first: 10 a day and 50 a month in UTC, then credits', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    const account = await accountWith(books, 10);
    books.clock.set('2026-11-25T23:59:59.999Z');
    const payments: string[] = [];
    for (let day = 0; day < 7; day++) {
      let free = 0;
      for (let i = 0; i < 11; i++) {
        const reservation = await reserve(books, account, preview);
        if (reservation.payment === 'free') free++;
        else await reservation.release();
      }
      payments.push(`${new Date(books.clock.at).toISOString().slice(0, 10)}: ${free}`);
      books.clock.forward(86_400_000);
    }
    t.deepEqual(payments, [
      '2026-11-25: 10',
      '2026-11-26: 10',
      '2026-11-27: 10',
      '2026-11-28: 10',
      '2026-11-29: 10',
      '2026-11-30: 0',
      '2026-12-01: 10',
    ]);
    t.is(await balanceOf(books, account), credits(10));
    t.deepEqual(await books.ledger.verify(), []);
  });

  test('the account shows what is left of the month, whether or not the day is used up', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    const account = await accountWith(books, 0);
    t.deepEqual(await books.ledger.balance(account), { credits: quarters(0), freeCalls: 50 });
    for (let i = 0; i < 10; i++) await (await reserve(books, account, preview)).settle();
    t.is((await books.ledger.reserve(account, preview)).outcome, 'insufficient');
    t.is((await books.ledger.balance(account)).freeCalls, 40);
    books.clock.set('2026-12-01T00:00:00Z');
    t.is((await books.ledger.balance(account)).freeCalls, 50);
  });

  test('a released free call returns to the day and the month it was taken from', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    const account = await accountWith(books, 0);
    books.clock.set('2026-11-30T23:59:59Z');
    const open = [];
    for (let i = 0; i < 10; i++) open.push(await reserve(books, account, preview));
    books.clock.set('2026-12-01T00:00:01Z');
    for (let i = 0; i < 10; i++) await (await reserve(books, account, preview)).settle();
    for (const reservation of open) await reservation.release();
    t.is((await books.ledger.reserve(account, preview)).outcome, 'insufficient');
    t.deepEqual(await books.ledger.verify(), []);
    books.clock.set('2026-11-30T23:59:59Z');
    t.is((await reserve(books, account, preview)).payment, 'free');
  });

  test('free calls pay for previews only', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    const account = await accountWith(books, 0);
    t.is((await books.ledger.reserve(account, full)).outcome, 'insufficient');
  });

  test('auto is a full result when it is larger than a preview and a whole credit is there', async (t) => {
    const books = await testBooks(t, noFreePreviews, newPlace);
    const rich = await accountWith(books, 1.25);
    t.deepEqual((await reserve(books, rich, auto(250_000))).tier, 'preview');
    const taken = await reserve(books, rich, auto(250_001));
    t.deepEqual([taken.tier, taken.charge], ['full', credits(1)]);
    t.deepEqual(await books.ledger.reserve(rich, auto(250_001)), {
      outcome: 'insufficient',
      needed: credits(0.25),
      balance: quarters(0),
    });
    const poor = await accountWith(books, 0.75);
    t.is((await reserve(books, poor, auto(9e6))).tier, 'preview');
  });

  test('auto handled as a preview uses a free call first', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    const account = await accountWith(books, 0.75);
    t.is((await reserve(books, account, auto(9e6))).payment, 'free');
  });

  test('with prices of 0 nothing is charged and nothing runs out', async (t) => {
    const prices = { preview: quarters(0), full: quarters(0) };
    const books = await testBooks(t, { ...standardBilling, prices }, newPlace);
    const account = await accountWith(books, 0);
    for (let i = 0; i < 60; i++) {
      for (const request of [preview, full, auto(9e6)]) {
        const reservation = await reserve(books, account, request);
        t.is(await reservation.settle(), quarters(0));
      }
    }
    t.is((await reserve(books, account, auto(9e6))).tier, 'full');
    t.is((await books.ledger.balance(account)).freeCalls, 50);
  });

  test('a limit of the day of 0 leaves that of the month', async (t) => {
    const books = await testBooks(
      t,
      { ...standardBilling, freePreviews: { perMonth: 12, perDay: 0 } },
      newPlace,
    );
    const account = await accountWith(books, 0);
    for (let i = 0; i < 12; i++) await reserve(books, account, preview);
    t.is((await books.ledger.reserve(account, preview)).outcome, 'insufficient');
  });

  test('200 parallel requests on 10 credits: exactly 40 previews or 10 full results', async (t) => {
    for (const [request, expected] of [
      [preview, 40],
      [full, 10],
    ] as const) {
      const books = await testBooks(t, noFreePreviews, newPlace);
      const account = await accountWith(books, 10);
      const charged = await Promise.all(
        Array.from({ length: 200 }, async () => {
          const outcome = await books.ledger.reserve(account, request);
          if (outcome.outcome !== 'reserved') return false;
          await new Promise((done) => setTimeout(done, Math.random() * 5));
          await outcome.reservation.settle();
          return true;
        }),
      );
      t.is(charged.filter(Boolean).length, expected);
      t.is(await balanceOf(books, account), quarters(0));
      t.deepEqual(await books.ledger.verify(), []);
    }
  });

  test('a reservation that ran out is released by the sweep; settling it then charges nothing', async (t) => {
    const books = await testBooks(t, noFreePreviews, newPlace);
    const account = await accountWith(books, 10);
    const late = await reserve(books, account, full);
    books.clock.forward(standardBilling.reservationSeconds * 1000 - 1);
    t.is(await books.ledger.sweep(), 0);
    books.clock.forward(1);
    t.is(await books.ledger.sweep(), 1);
    t.is(await balanceOf(books, account), credits(10));
    t.is(await late.settle(), quarters(0));
    t.is(await balanceOf(books, account), credits(10));
    t.deepEqual(await books.ledger.verify(), []);
  });

  test('a server that died leaves nothing open: work is released, what was not delivered given back', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    const account = await accountWith(books, 10);
    await reserve(books, account, full);
    await reserve(books, account, preview);
    t.is(await (await reserve(books, account, full)).settle('pending'), credits(1));
    const out = await reserve(books, account, full);
    await out.settle('pending');
    await out.delivered();
    await (await reserve(books, account, full)).settle();
    t.is(await balanceOf(books, account), credits(6));
    await books.close();

    const again = await testServer(t, books, { clock: books.clock });
    t.is(again.recovered, 3);
    t.is(await again.ledger.openReservations(), 0);
    t.deepEqual(await again.ledger.balance(account), { credits: credits(8), freeCalls: 50 });
    t.deepEqual(await again.ledger.verify(), []);
  });

  test('delivery is reported as often as one likes, and never ends a reservation that is still held', async (t) => {
    const books = await testBooks(t, noFreePreviews, newPlace);
    const account = await accountWith(books, 10);
    const reservation = await reserve(books, account, full);
    await reservation.delivered();
    t.is(await books.ledger.openReservations(), 1);
    await reservation.settle('pending');
    await reservation.delivered();
    await reservation.delivered();
    t.is(await reservation.settle(), credits(1));
    t.is(await books.ledger.openReservations(), 0);
    t.is(await balanceOf(books, account), credits(9));
  });

  test('another process may say that an answer is out, by its number, and hears whether its charge stands', async (t) => {
    const books = await testBooks(t, noFreePreviews, newPlace);
    const account = await accountWith(books, 10);
    const { ledger } = books;
    const out = await reserve(books, account, full);
    t.false(await ledger.delivered(out.id), 'not charged yet');
    t.is(await ledger.openReservations(), 1);
    await out.settle('pending');
    t.true(await ledger.delivered(out.id));
    t.is(await ledger.openReservations(), 0, 'final: a crash gives nothing back');
    t.true(await ledger.delivered(out.id));

    const back = await reserve(books, account, full);
    await back.settle('pending');
    await ledger.refund(account, back.id);
    t.false(await ledger.delivered(back.id), 'given back');
    const released = await reserve(books, account, full);
    await released.release();
    t.false(await ledger.delivered(released.id));
    t.false(await ledger.delivered(123_456), 'unknown');

    // A repeat stands as long as the charge that it stands for.
    const repeat = { content: 'c', forMs: 600_000 };
    const first = await reserve(books, account, { ...full, repeat });
    await first.settle('pending');
    const again = await reserve(books, account, { ...full, repeat });
    t.is(await again.settle('pending'), credits(0));
    t.true(await ledger.delivered(again.id));
    await ledger.refund(account, first.id);
    t.false(await ledger.delivered(again.id));
    t.is(await balanceOf(books, account), credits(9));
    t.deepEqual(await ledger.verify(), []);
  });

  test('a pending answer that ran out counts as delivered', async (t) => {
    const books = await testBooks(t, noFreePreviews, newPlace);
    const account = await accountWith(books, 10);
    await (await reserve(books, account, full)).settle('pending');
    books.clock.forward(standardBilling.reservationSeconds * 1000);
    t.is(await books.ledger.sweep(), 1);
    t.is(await balanceOf(books, account), credits(9));
    t.deepEqual(await books.ledger.verify(), []);
  });

  test('an outside event counts once for an account', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    const account = await accountWith(books, 0);
    const bought = { kind: 'purchase', amount: credits(50), reference: 'evt_1' } as const;
    t.deepEqual(await books.ledger.post(account, bought), { outcome: 'posted', balance: credits(50) });
    t.deepEqual(await books.ledger.post(account, bought), { outcome: 'duplicate', balance: credits(50) });
    await t.throwsAsync(books.ledger.post(account, { ...bought, amount: credits(60) }), {
      code: 'STORE_REFERENCE_REUSED',
    });
    t.is((await books.ledger.post(await accountWith(books, 0), bought)).outcome, 'posted');
  });

  test('an adjustment may take credits, but none that are not there', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    const account = await accountWith(books, 1);
    t.deepEqual(
      await books.ledger.post(account, { kind: 'adjust', amount: credits(-0.5), note: 'typing error' }),
      {
        outcome: 'posted',
        balance: credits(0.5),
      },
    );
    t.deepEqual(await books.ledger.post(account, { kind: 'adjust', amount: credits(-1) }), {
      outcome: 'insufficient',
      balance: credits(0.5),
    });
    await t.throwsAsync(books.ledger.post(account, { kind: 'grant', amount: credits(-1) }), {
      instanceOf: RangeError,
    });
    await t.throwsAsync(books.ledger.post(account, { kind: 'adjust', amount: quarters(0) }), {
      instanceOf: RangeError,
    });
    t.deepEqual(await books.ledger.verify(), []);
  });

  test('what was granted, bought, adjusted and given back is counted over all accounts', async (t) => {
    const books = await testBooks(t, noFreePreviews, newPlace);
    t.deepEqual(await books.ledger.booked(), []);
    t.is(await books.ledger.balances(), quarters(0));
    const [one, other] = [await accountWith(books, 10), await accountWith(books, 5)];
    await books.ledger.post(one, { kind: 'purchase', amount: credits(40), reference: 'sale' });
    await books.ledger.post(one, { kind: 'purchase', amount: credits(40), reference: 'sale' });
    await books.ledger.post(other, { kind: 'adjust', amount: credits(-2) });
    await books.ledger.post(one, { kind: 'adjust', amount: credits(0.5) });
    for (const account of [one, other]) {
      const charged = await reserve(books, account, full);
      await charged.settle();
      if (account === one) await books.ledger.refund(account, charged.id);
    }
    t.deepEqual(await books.ledger.booked(), [
      { kind: 'adjust', direction: 'in', amount: credits(0.5) },
      { kind: 'adjust', direction: 'out', amount: credits(2) },
      { kind: 'grant', direction: 'in', amount: credits(15) },
      { kind: 'purchase', direction: 'in', amount: credits(40) },
      { kind: 'refund', direction: 'in', amount: credits(1) },
    ]);
    t.is(await books.ledger.balances(), credits(15 + 40 - 2 + 0.5 - 1));
  });

  test('entries cannot be changed or deleted, not even by hand', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    await accountWith(books, 1);
    await t.throwsAsync(books.database.run('UPDATE entry SET amount = 400'), {
      any: true,
      message: /append-only/,
    });
    await t.throwsAsync(books.database.run('DELETE FROM entry'), { any: true, message: /append-only/ });
  });

  test('verify finds a balance, a free call and a reservation that do not fit the entries', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    const account = await accountWith(books, 1);
    await reserve(books, account, preview);
    t.deepEqual(await books.ledger.verify(), []);
    await books.database.run('UPDATE account SET balance = balance + 1');
    await books.database.run('UPDATE free_use SET used = used + 1');
    await books.database.run('DELETE FROM reservation');
    const found = await books.ledger.verify();
    t.is(found.length, 4);
    t.regex(found.join('\n'), /balance of account acc_\w+ is 5, its entries give 4/);
    t.regex(found.join('\n'), /free previews of account acc_\w+ in 2026-11-21 is 2, its entries give 1/);
  });

  test('an account that does not exist cannot reserve', async (t) => {
    const books = await testBooks(t, standardBilling, newPlace);
    await t.throwsAsync(books.ledger.reserve('acc_none', preview), { code: 'STORE_UNKNOWN_ACCOUNT' });
  });

  test('an operator may work on the books beside the server', async (t) => {
    const server = await testBooks(t, noFreePreviews, newPlace);
    const account = await accountWith(server, 1);
    const operator = await openBooks({ ...server, billing: noFreePreviews });
    await operator.ledger.post(account, { kind: 'grant', amount: credits(2) });
    await operator.close();
    t.is(await balanceOf(server, account), credits(3));
  });
}
