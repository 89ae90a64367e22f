import type { TestFn } from 'ava';
import { Ledger } from '../../src/billing/ledger.ts';
import { credits, quarters, standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import type { Reservation, ReserveRequest } from '../../src/billing/types.ts';
import type { CachedResult } from '../../src/cutout/result.ts';
import { cachedResultCodec } from '../../src/idempotency/codec.ts';
import { textHash } from '../../src/idempotency/hash.ts';
import { contentKey } from '../../src/idempotency/resultStore.ts';
import { isUnavailable, StoreError } from '../../src/store/error.ts';
import { withStatements, withTransactions } from '../support/database.ts';
import {
  accountWith,
  type NewPlace,
  noFreePreviews,
  type TestStores,
  testServer,
  testStores,
  undefinedIfInsufficient,
} from '../support/stores.ts';

const preview = { size: 'preview', requestId: 'r' } as const;
const full = { size: 'full', requestId: 'r' } as const;
const auto = { size: 'auto', requestId: 'r' } as const;

const reserve = (stores: TestStores, account: string, request: ReserveRequest): Promise<Reservation> =>
  stores.ledger.reserve(account, request);

/** What is thrown where credits are missing. */
const lacking = (needed: string, balance: string) => ({
  code: 'insufficient_credits',
  message: `insufficient_credits: This request needs ${needed}, the balance is ${balance}.`,
});

const balanceOf = async (stores: TestStores, account: string) =>
  (await stores.ledger.balance(account)).credits;

/** 200 ledger transactions wait for one row; on a slow machine the last of them are refused, as 503, and retried. */
async function whenAvailable<T>(movement: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await movement();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
  }
}

/** What the ledger must do on every database. Registers its tests with `test`. */
export function testLedgerContract(test: TestFn, newPlace: NewPlace): void {
  test('a reservation takes its credits at once, settling keeps them, releasing returns them', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 10);
    const one = await reserve(stores, account, full);
    const other = await reserve(stores, account, preview);
    t.deepEqual([one.tier, one.payment], ['full', 'full']);
    t.deepEqual([other.tier, other.payment], ['preview', 'preview']);
    t.is(await balanceOf(stores, account), credits(8.75));
    t.is((await one.settle()).charged, credits(1));
    await other.release();
    t.is(await balanceOf(stores, account), credits(9));
    t.is(await stores.ledger.openReservations(), 1, 'until its answer is out');
    await one.deliver();
    t.is(await stores.ledger.openReservations(), 0);
    t.deepEqual(
      (await stores.ledger.statement(account)).map(({ kind, amount, balance, reservationId }) => [
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
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('a reservation ends once, however often it is settled or released', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 10);
    const settled = await reserve(stores, account, full);
    const released = await reserve(stores, account, full);
    for (let i = 0; i < 3; i++) {
      t.is((await settled.settle()).charged, credits(1));
      await settled.deliver();
      await settled.release();
      await released.release();
    }
    t.is(await balanceOf(stores, account), credits(9));
    t.is((await stores.ledger.statement(account)).length, 5);
  });

  test('without enough credits nothing is taken and the caller learns what is needed', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 0.75);
    await t.throwsAsync(stores.ledger.reserve(account, full), lacking('1 credit', '0.75'));
    await t.throwsAsync(stores.ledger.quote(account, full), lacking('1 credit', '0.75'));
    t.is(await stores.ledger.quote(account, preview), 'preview');
    t.is((await stores.ledger.statement(account)).length, 1);
  });

  test('free previews come first: 10 a day and 50 a month in UTC, then credits', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 10);
    stores.clock.set('2026-11-25T23:59:59.999Z');
    const payments: string[] = [];
    for (let day = 0; day < 7; day++) {
      let free = 0;
      for (let i = 0; i < 11; i++) {
        const reservation = await reserve(stores, account, preview);
        if (reservation.payment === 'free') free++;
        else await reservation.release();
      }
      payments.push(`${new Date(stores.clock.at).toISOString().slice(0, 10)}: ${free}`);
      stores.clock.forward(86_400_000);
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
    t.is(await balanceOf(stores, account), credits(10));
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('the account shows what is left of the month, also when the day is used up', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 0);
    t.deepEqual(await stores.ledger.balance(account), { credits: quarters(0), freeCalls: 50 });
    for (let i = 0; i < 10; i++) await (await reserve(stores, account, preview)).settle();
    await t.throwsAsync(stores.ledger.reserve(account, preview), { code: 'insufficient_credits' });
    t.is((await stores.ledger.balance(account)).freeCalls, 40);
    stores.clock.set('2026-12-01T00:00:00Z');
    t.is((await stores.ledger.balance(account)).freeCalls, 50);
  });

  test('a released free call returns to the day and the month it was taken from', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 0);
    stores.clock.set('2026-11-30T23:59:59Z');
    const open = [];
    for (let i = 0; i < 10; i++) open.push(await reserve(stores, account, preview));
    stores.clock.set('2026-12-01T00:00:01Z');
    for (let i = 0; i < 10; i++) await (await reserve(stores, account, preview)).settle();
    for (const reservation of open) await reservation.release();
    await t.throwsAsync(stores.ledger.reserve(account, preview), { code: 'insufficient_credits' });
    t.deepEqual(await stores.ledger.verify(), []);
    stores.clock.set('2026-11-30T23:59:59Z');
    t.is((await reserve(stores, account, preview)).payment, 'free');
  });

  test('free calls pay for previews only', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 0);
    await t.throwsAsync(stores.ledger.reserve(account, full), { code: 'insufficient_credits' });
  });

  test('auto is a full result when a whole credit is there', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const rich = await accountWith(stores, 1.25);
    t.is((await reserve(stores, rich, auto)).tier, 'full');
    t.is((await reserve(stores, rich, auto)).tier, 'preview');
    await t.throwsAsync(stores.ledger.reserve(rich, auto), lacking('0.25 credits', '0'));
    const poor = await accountWith(stores, 0.75);
    t.is((await reserve(stores, poor, auto)).tier, 'preview');
  });

  test('`auto` resolved to a preview uses a free call first', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 0.75);
    t.is((await reserve(stores, account, auto)).payment, 'free');
  });

  test('with prices of 0 nothing is charged and nothing is used up', async (t) => {
    const prices = { preview: quarters(0), full: quarters(0) };
    const stores = await testStores(t, { ...standardBilling, prices }, newPlace);
    const account = await accountWith(stores, 0);
    for (let i = 0; i < 60; i++) {
      for (const request of [preview, full, auto]) {
        const reservation = await reserve(stores, account, request);
        t.is((await reservation.settle()).charged, quarters(0));
      }
    }
    t.is((await reserve(stores, account, auto)).tier, 'full');
    t.is((await stores.ledger.balance(account)).freeCalls, 50);
  });

  test('a daily limit of 0 leaves the monthly one', async (t) => {
    const stores = await testStores(
      t,
      { ...standardBilling, freePreviews: { perMonth: 12, perDay: 0 } },
      newPlace,
    );
    const account = await accountWith(stores, 0);
    for (let i = 0; i < 12; i++) await reserve(stores, account, preview);
    await t.throwsAsync(stores.ledger.reserve(account, preview), { code: 'insufficient_credits' });
  });

  test('200 parallel requests on 10 credits: exactly 40 previews or 10 full results', async (t) => {
    for (const [request, expected] of [
      [preview, 40],
      [full, 10],
    ] as const) {
      const stores = await testStores(t, noFreePreviews, newPlace);
      const account = await accountWith(stores, 10);
      const charged = await Promise.all(
        Array.from({ length: 200 }, async () => {
          const reservation = await whenAvailable(() => stores.ledger.reserve(account, request)).catch(
            undefinedIfInsufficient,
          );
          if (!reservation) return false;
          await new Promise((done) => setTimeout(done, Math.random() * 5));
          await whenAvailable(() => reservation.settle());
          return true;
        }),
      );
      t.is(charged.filter(Boolean).length, expected);
      t.is(await balanceOf(stores, account), quarters(0));
      t.deepEqual(await stores.ledger.verify(), []);
    }
  });

  test('work whose reservation expired is charged again when it is done, or refused', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 2);
    const [late, poor] = [await reserve(stores, account, full), await reserve(stores, account, full)];
    stores.clock.forward(standardBilling.reservationSeconds * 1000 - 1);
    t.is(await stores.ledger.sweep(), 0);
    stores.clock.forward(1);
    t.is(await stores.ledger.sweep(), 2);
    t.is(await balanceOf(stores, account), credits(2));
    const settlement = await late.settle();
    t.is(settlement.charged, credits(1));
    t.deepEqual(await late.settle(), settlement, 'once');
    t.is(await balanceOf(stores, account), credits(1));
    t.is(await stores.ledger.openReservations(), 1);
    t.deepEqual(await stores.ledger.verify(), []);
    t.like((await stores.ledger.statement(account)).at(-2), {
      id: settlement.charge,
      kind: 'reserve',
      amount: credits(-1),
      payment: 'full',
      reservationId: null,
      note: `in place of ${late.id}`,
    });
    await stores.ledger.post(account, { kind: 'adjust', amount: credits(-0.5) });
    await t.throwsAsync(poor.settle(), lacking('1 credit', '0.5'));
    await poor.release();
    t.is(await balanceOf(stores, account), credits(0.5));
    await late.deliver();
    await late.release();
    t.is(await balanceOf(stores, account), credits(0.5), 'final');
    t.is(await stores.ledger.openReservations(), 0);
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('work whose server was considered dead is charged again, with a free preview if one is left', async (t) => {
    const billing = { ...standardBilling, freePreviews: { perMonth: 1, perDay: 0 } };
    const stores = await testStores(t, billing, newPlace);
    const account = await accountWith(stores, 1);
    const repeat = { content: 'c', forMs: 600_000 };
    // This ledger has no lease: its answers count as those of a dead server.
    const frozen = await reserve(stores, account, { ...preview, repeat });
    t.is(await stores.ledger.recover(), 1);
    t.is((await stores.ledger.balance(account)).freeCalls, 1);
    const settlement = await frozen.settle();
    t.is(settlement.charged, quarters(0));
    t.deepEqual(await stores.ledger.balance(account), { credits: credits(1), freeCalls: 0 });
    t.deepEqual(await stores.ledger.verify(), []);
    // It is remembered by its content, as every charge is.
    const again = await reserve(stores, account, { ...preview, repeat });
    t.is((await again.settle()).charge, settlement.charge);
    for (const each of [frozen, again]) await each.release();
    t.deepEqual(await stores.ledger.balance(account), { credits: credits(1), freeCalls: 1 });

    const paid = await reserve(stores, account, preview);
    t.is(await stores.ledger.recover(), 1);
    await (await reserve(stores, account, preview)).settle();
    t.is((await paid.settle()).charged, credits(0.25), 'the free one went to somebody else');
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('work whose reservation expired carries a charge made for the same content meanwhile', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 1);
    const repeat = { content: 'c', forMs: 600_000 };
    const late = await reserve(stores, account, { ...full, repeat });
    stores.clock.forward(standardBilling.reservationSeconds * 1000);
    t.is(await stores.ledger.sweep(), 1);
    const other = await reserve(stores, account, { ...full, repeat });
    await other.settle();
    t.deepEqual(await late.settle(), { charged: quarters(0), payment: undefined, charge: other.id });
    await other.release();
    t.is(await balanceOf(stores, account), credits(0), 'the late one may still be out');
    await late.release();
    t.is(await balanceOf(stores, account), credits(1));
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('a repeat whose charge was refunded during the work is charged itself', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 1);
    const repeat = { content: 'c', forMs: 600_000 };
    const first = await reserve(stores, account, { ...full, repeat });
    await first.settle();
    await first.deliver();
    const again = await reserve(stores, account, { ...full, repeat });
    t.true(await stores.ledger.refund(account, first.id));
    t.is((await again.settle()).charged, credits(1));
    await again.deliver();
    t.is(await balanceOf(stores, account), credits(0));
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('a server that died leaves nothing open: work is released, undelivered charges are refunded', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 10);
    await reserve(stores, account, full);
    await reserve(stores, account, preview);
    t.is((await (await reserve(stores, account, full)).settle()).charged, credits(1));
    const out = await reserve(stores, account, full);
    await out.settle();
    await out.deliver();
    const charged = await reserve(stores, account, full);
    await charged.settle();
    await charged.deliver();
    t.is(await balanceOf(stores, account), credits(6));
    await stores.close();

    const again = await testServer(t, stores, { clock: stores.clock });
    t.is(again.recovered, 3);
    t.is(await again.ledger.openReservations(), 0);
    t.deepEqual(await again.ledger.balance(account), { credits: credits(8), freeCalls: 50 });
    t.deepEqual(await again.ledger.verify(), []);
  });

  test('delivery may be reported repeatedly and never ends a reservation that is still held', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 10);
    const reservation = await reserve(stores, account, full);
    await reservation.deliver();
    t.is(await stores.ledger.openReservations(), 1);
    await reservation.settle();
    await reservation.deliver();
    await reservation.deliver();
    t.is((await reservation.settle()).charged, credits(1));
    t.is(await stores.ledger.openReservations(), 0);
    t.is(await balanceOf(stores, account), credits(9));
  });

  test('another process may answer with a charge, by its number, while the charge is valid', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 10);
    const { ledger } = stores;
    const of = (content: string) => ({ ...full, repeat: { content, forMs: 600_000 } });
    const isFor = () => true;
    const first = await reserve(stores, account, of('a'));
    t.is(await ledger.addAnswer(first.id, isFor), undefined, 'not charged yet');
    t.is(await ledger.openReservations(), 1);
    await first.settle();
    const other = await ledger.addAnswer(first.id, isFor);
    t.is(await ledger.openReservations(), 2);
    await first.release();
    t.is(await balanceOf(stores, account), credits(9), 'the other one may still be out');
    await other?.deliver();
    t.is(await ledger.openReservations(), 0, 'final: a crash gives nothing back');
    const late = await ledger.addAnswer(first.id, isFor);
    t.is(await ledger.openReservations(), 0, 'nothing is left to be decided');
    await late?.release();
    t.is(await balanceOf(stores, account), credits(9));

    const vain = await reserve(stores, account, of('b'));
    await vain.settle();
    const both = [vain, await ledger.addAnswer(vain.id, isFor)];
    for (const answer of both) await answer?.release();
    t.is(await balanceOf(stores, account), credits(9), 'nobody got it');
    t.is(await ledger.addAnswer(vain.id, isFor), undefined, 'given back');

    const released = await reserve(stores, account, of('c'));
    await released.release();
    t.is(await ledger.addAnswer(released.id, isFor), undefined);
    t.is(await ledger.addAnswer(123_456, isFor), undefined, 'unknown');
    t.is(await ledger.openReservations(), 0);
    t.deepEqual(await ledger.verify(), []);
  });

  test('a charge pays only for the account and the content it was made for, even if a number is reused', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 10);
    const repeat = { content: 'c', forMs: 600_000 };
    const charged = await reserve(stores, account, { ...full, repeat });
    await charged.settle();
    const asked: unknown[] = [];
    const refuse = (paid: unknown) => {
      asked.push(paid);
      return false;
    };
    t.is(await stores.ledger.addAnswer(charged.id, refuse), undefined);
    t.deepEqual(asked, [{ accountId: account, content: 'c' }]);
    t.is(await stores.ledger.openReservations(), 1);
    // A repeat is not a charge, and work without a content name cannot be repeated.
    const again = await reserve(stores, account, { ...full, repeat });
    await again.settle();
    t.is(await stores.ledger.addAnswer(again.id, () => true), undefined);
    const unnamed = await reserve(stores, account, full);
    await unnamed.settle();
    t.is(await stores.ledger.addAnswer(unnamed.id, () => true), undefined);

    const { pack, unpack } = cachedResultCodec<CachedResult>(stores.ledger);
    const bytes = Buffer.from('result');
    const travelled = pack({ bytes, charge: charged.id } as CachedResult);
    const nameOf = (owner: string, content: string) => textHash(contentKey(owner, content));
    t.is(await unpack(travelled, nameOf('acc_other', 'c')), undefined, "another account's");
    t.is(await unpack(travelled, nameOf(account, 'd')), undefined, 'of another image');
    const found = await unpack(travelled, nameOf(account, 'c'));
    t.true(await found?.chargeHandle.isChargeValid());
    t.true(await stores.ledger.refund(account, charged.id));
    t.false(await found?.chargeHandle.isChargeValid());
    t.is(await unpack(travelled, nameOf(account, 'c')), undefined, 'given back');
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('a repeat was not charged: its refund names the charge', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 10);
    const repeat = { content: 'c', forMs: 600_000 };
    const charged = await reserve(stores, account, { ...full, repeat });
    await charged.settle();
    const again = await reserve(stores, account, { ...full, repeat });
    await again.settle();
    for (let i = 0; i < 2; i++) {
      await t.throwsAsync(stores.ledger.refund(account, again.id), {
        code: 'STORE_NOT_CHARGED',
        message: new RegExp(`^Reservation ${again.id} repeats ${charged.id} .* refund that one`),
      });
      t.is(await balanceOf(stores, account), credits(i === 0 ? 9 : 10));
      t.is(await stores.ledger.refund(account, charged.id), i === 0);
    }
    t.is((await stores.ledger.statement(account)).filter(({ kind }) => kind === 'refund').length, 1);
  });

  test('an operator may refund a charge while its answer is being sent, once', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 10);
    const repeat = { content: 'c', forMs: 600_000 };
    const first = await reserve(stores, account, { ...full, repeat });
    await first.settle();
    const again = await reserve(stores, account, { ...full, repeat });
    t.true(await stores.ledger.refund(account, first.id));
    t.deepEqual(await stores.ledger.verify(), []);
    await again.settle();
    await again.release();
    await first.release();
    t.false(await stores.ledger.refund(account, first.id));
    t.is(await balanceOf(stores, account), credits(10));
    t.is(await stores.ledger.openReservations(), 0);
    await reserve(stores, account, { ...full, repeat });
    t.is(await balanceOf(stores, account), credits(9), 'nothing stands for it');
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('a charge without an answer is refunded, whenever the release comes', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 10);
    for (const request of [full, preview]) {
      const reservation = await reserve(stores, account, request);
      await reservation.settle();
      await reservation.release();
      await reservation.release();
      await reservation.deliver();
    }
    t.deepEqual(await stores.ledger.balance(account), { credits: credits(10), freeCalls: 50 });
    t.is(await stores.ledger.openReservations(), 0);
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('all rows of a reservation have one time, even if the clock moves while they are written', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 10);
    // Every reading is on another day.
    let readings = 0;
    const days = Date.parse('2026-11-20T23:59:59Z');
    const ledger = new Ledger(stores.database, {
      billing: standardBilling,
      now: () => days + 86_400_000 * readings++,
    });
    for (const end of ['release', 'settle', 'refund'] as const) {
      const reservation = await ledger.reserve(account, preview);
      t.is(reservation.payment, 'free');
      t.deepEqual(await ledger.verify(), []);
      if (end === 'release') await reservation.release();
      else await reservation.settle();
      if (end === 'refund') await ledger.refund(account, reservation.id);
      t.deepEqual(await ledger.verify(), []);
    }
  });

  test('an end that fails permanently is reported and dropped, and delays no other', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const [one, other] = [await accountWith(stores, 10), await accountWith(stores, 10)];
    let away = false;
    let broken: string | undefined;
    const database = withTransactions(stores.database, (work) => {
      if (away) return Promise.reject(new StoreError('STORE_UNAVAILABLE', 'The database is away.'));
      return stores.database.transaction((sql) =>
        work(
          withStatements(sql, (values) => {
            if ('accountId' in values && values.accountId === broken)
              throw new RangeError('This account is broken.');
          }),
        ),
      );
    });
    const errors: unknown[] = [];
    const { now } = stores.clock;
    const ledger = new Ledger(database, {
      billing: noFreePreviews,
      now,
      onError: (error) => errors.push(error),
    });
    const both = [await ledger.reserve(one, full), await ledger.reserve(other, full)];
    away = true;
    for (const reservation of both) await reservation.release();
    t.is(await stores.ledger.openReservations(), 2);
    away = false;
    broken = one;
    await ledger.sweep();
    t.is(await balanceOf(stores, other), credits(10), 'the next one had its turn');
    t.like(errors, [{ message: 'This account is broken.' }]);
    await ledger.sweep();
    t.is(errors.length, 1, 'dropped');
    // The rest expires, or is released when its server is considered dead; neither delays another account.
    await ledger.reserve(other, full);
    stores.clock.forward(standardBilling.reservationSeconds * 1000);
    t.is(await ledger.sweep(), 1);
    t.is(await balanceOf(stores, other), credits(10));
    t.is(errors.length, 2);
    broken = undefined;
    t.is(await ledger.sweep(), 1);
    t.is(await balanceOf(stores, one), credits(10));
    t.is(await stores.ledger.openReservations(), 0);
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test("the clock is the database's, not a server's", async (t) => {
    const place = await newPlace(t);
    const stores = await openStores({ ...place, billing: noFreePreviews });
    t.teardown(stores.close);
    const account = await accountWith(stores, 10);
    const reservation = await stores.ledger.reserve(account, full);
    const real = Date.now;
    t.teardown(() => {
      Date.now = real;
    });
    const wrong = real() + 400 * 86_400_000;
    Date.now = () => wrong;
    t.is(await stores.ledger.sweep(), 0, 'expired by nobody with a wrong clock');
    await reservation.settle();
    Date.now = real;
    const times = (await stores.ledger.statement(account)).map(({ at }) => Math.abs(at - real()));
    t.true(
      times.every((off) => off < 3_600_000),
      String(times),
    );
    t.is(await stores.ledger.sweep(), 0);
  });

  test('an undelivered answer that expired counts as delivered', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(stores, 10);
    await (await reserve(stores, account, full)).settle();
    stores.clock.forward(standardBilling.reservationSeconds * 1000);
    t.is(await stores.ledger.sweep(), 1);
    t.is(await balanceOf(stores, account), credits(9));
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('an external event counts once for an account', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 0);
    const bought = { kind: 'purchase', amount: credits(50), reference: 'evt_1' } as const;
    t.deepEqual(await stores.ledger.post(account, bought), { outcome: 'posted', balance: credits(50) });
    t.deepEqual(await stores.ledger.post(account, bought), { outcome: 'duplicate', balance: credits(50) });
    await t.throwsAsync(stores.ledger.post(account, { ...bought, amount: credits(60) }), {
      code: 'STORE_REFERENCE_REUSED',
    });
    t.is((await stores.ledger.post(await accountWith(stores, 0), bought)).outcome, 'posted');
  });

  test('an adjustment may remove credits, but not below 0', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 1);
    t.deepEqual(
      await stores.ledger.post(account, { kind: 'adjust', amount: credits(-0.5), note: 'typing error' }),
      {
        outcome: 'posted',
        balance: credits(0.5),
      },
    );
    t.deepEqual(await stores.ledger.post(account, { kind: 'adjust', amount: credits(-1) }), {
      outcome: 'insufficient',
      balance: credits(0.5),
    });
    await t.throwsAsync(stores.ledger.post(account, { kind: 'grant', amount: credits(-1) }), {
      instanceOf: RangeError,
    });
    await t.throwsAsync(stores.ledger.post(account, { kind: 'adjust', amount: quarters(0) }), {
      instanceOf: RangeError,
    });
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('grants, purchases, adjustments and refunds are summed over all accounts', async (t) => {
    const stores = await testStores(t, noFreePreviews, newPlace);
    t.deepEqual(await stores.ledger.booked(), []);
    t.is(await stores.ledger.balances(), quarters(0));
    const [one, other] = [await accountWith(stores, 10), await accountWith(stores, 5)];
    await stores.ledger.post(one, { kind: 'purchase', amount: credits(40), reference: 'sale' });
    await stores.ledger.post(one, { kind: 'purchase', amount: credits(40), reference: 'sale' });
    await stores.ledger.post(other, { kind: 'adjust', amount: credits(-2) });
    await stores.ledger.post(one, { kind: 'adjust', amount: credits(0.5) });
    for (const account of [one, other]) {
      const charged = await reserve(stores, account, full);
      await charged.settle();
      if (account === one) await stores.ledger.refund(account, charged.id);
    }
    t.deepEqual(await stores.ledger.booked(), [
      { kind: 'adjust', direction: 'in', amount: credits(0.5) },
      { kind: 'adjust', direction: 'out', amount: credits(2) },
      { kind: 'grant', direction: 'in', amount: credits(15) },
      { kind: 'purchase', direction: 'in', amount: credits(40) },
      { kind: 'refund', direction: 'in', amount: credits(1) },
    ]);
    t.is(await stores.ledger.balances(), credits(15 + 40 - 2 + 0.5 - 1));
  });

  test('entries cannot be changed or deleted, not even by SQL', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    await accountWith(stores, 1);
    await t.throwsAsync(stores.database.run('UPDATE entry SET amount = 400'), {
      any: true,
      message: /append-only/,
    });
    await t.throwsAsync(stores.database.run('DELETE FROM entry'), { any: true, message: /append-only/ });
  });

  test('verify finds a balance, a free call and a reservation that contradict the entries', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    const account = await accountWith(stores, 1);
    await reserve(stores, account, preview);
    t.deepEqual(await stores.ledger.verify(), []);
    await stores.database.run('UPDATE account SET balance = balance + 1');
    await stores.database.run('UPDATE free_use SET used = used + 1');
    await stores.database.run('DELETE FROM answer');
    const found = await stores.ledger.verify();
    t.is(found.length, 4);
    t.regex(found.join('\n'), /balance of account acc_\w+ is 5, its entries give 4/);
    t.regex(found.join('\n'), /free previews of account acc_\w+ in 2026-11-21 is 2, its entries give 1/);
  });

  test('an account that does not exist cannot reserve', async (t) => {
    const stores = await testStores(t, standardBilling, newPlace);
    await t.throwsAsync(stores.ledger.reserve('acc_none', preview), { code: 'STORE_UNKNOWN_ACCOUNT' });
  });

  test('an operator may change the ledger while the server runs', async (t) => {
    const server = await testStores(t, noFreePreviews, newPlace);
    const account = await accountWith(server, 1);
    const operator = await openStores({ ...server, billing: noFreePreviews });
    await operator.ledger.post(account, { kind: 'grant', amount: credits(2) });
    await operator.close();
    t.is(await balanceOf(server, account), credits(3));
  });
}
