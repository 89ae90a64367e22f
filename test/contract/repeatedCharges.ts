import type { ExecutionContext, TestFn } from 'ava';
import { credits, quarters, standardBilling } from '../../src/billing/price.ts';
import type { Reservation, ReserveRequest } from '../../src/billing/types.ts';
import type { Repeatable } from '../../src/idempotency/chargedContent.ts';
import {
  accountWith,
  type NewPlace,
  noFreePreviews,
  type TestStores,
  testServer,
  testStores,
} from '../support/stores.ts';

const forMs = 600_000;
const named = (content: string): Repeatable => ({ content, forMs });

/** Charged content is not charged again, even if its result is lost. */
export function testRepeatedChargesContract(test: TestFn, newPlace: NewPlace): void {
  async function start(t: ExecutionContext, billing = noFreePreviews) {
    const stores = await testStores(t, billing, newPlace);
    const account = await accountWith(stores, 10);
    const reserve = (repeat: Repeatable, size: ReserveRequest['size'] = 'full'): Promise<Reservation> =>
      reserveIn(stores, account, repeat, size);
    const balance = async () => (await stores.ledger.balance(account)).credits;
    /** Credits that one more reservation takes from the balance. */
    const cost = async (repeat: Repeatable, size?: ReserveRequest['size']) => {
      const before = await balance();
      await reserve(repeat, size);
      return quarters(before - (await balance()));
    };
    return { stores, account, reserve, balance, cost };
  }

  const reserveIn = (
    stores: Pick<TestStores, 'ledger'>,
    account: string,
    repeat: Repeatable,
    size: ReserveRequest['size'],
  ): Promise<Reservation> => stores.ledger.reserve(account, { size, requestId: 'r', repeat });

  test('charges: the uncertainty of a result is in the statement, and counted from 0.5', async (t) => {
    const { stores, account, reserve } = await start(t);
    for (const [content, uncertainty] of [
      ['a', 0.499],
      ['b', 0.5],
      ['c', 1],
      ['d', -1],
      ['e', undefined],
    ] as const)
      await (await reserve(named(content))).settle(uncertainty);
    const settled = await stores.ledger.statementNewestFirst(account, { kind: 'settle' });
    t.deepEqual(
      settled.map((entry) => entry.uncertainty),
      [null, null, 1000, 500, 499],
    );
    t.like((await stores.ledger.usage())[0], { calls: 5, toReview: 2 });
  });

  test('repeats: the same work is free while results are cached, and the statement shows it', async (t) => {
    const { stores, account, reserve, balance, cost } = await start(t);
    const first = await reserve(named('a'));
    t.is((await first.settle()).charged, credits(1));
    const again = await reserve(named('a'));
    t.deepEqual([again.tier, again.payment], ['full', 'full']);
    t.is((await again.settle()).charged, quarters(0));
    await again.deliver();
    t.is(await balance(), credits(9));
    const entry = (await stores.ledger.statement(account)).find(({ id }) => id === again.id);
    t.like(entry, { kind: 'reserve', amount: quarters(0), reservationId: first.id, note: 'repeat' });
    t.is((await stores.ledger.usage())[0]?.calls, 1, 'a repeat is no call of its own');
    stores.clock.forward(forMs);
    t.is(await cost(named('a')), credits(1));
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('repeats: other work, other accounts and uncharged work cost their price', async (t) => {
    const { stores, account, reserve, cost } = await start(t);
    await (await reserve(named('a'))).settle();
    t.is(await cost(named('b')), credits(1));
    const other = await accountWith(stores, 1);
    await reserveIn(stores, other, named('a'), 'full');
    t.is((await stores.ledger.balance(other)).credits, quarters(0));
    await (await reserve(named('c'))).release();
    t.is(await cost(named('c')), credits(1), 'released');
    const given = await reserve(named('d'));
    await given.settle();
    t.true(await stores.ledger.refund(account, given.id));
    t.is(await cost(named('d')), credits(1), 'given back');
  });

  test('repeats: the sweep forgets expired charges', async (t) => {
    const { stores, reserve } = await start(t);
    await (await reserve(named('a'))).settle();
    const kept = async () => (await stores.database.all('SELECT name FROM repeat')).length;
    await stores.ledger.sweep();
    t.is(await kept(), 1);
    stores.clock.forward(forMs);
    await stores.ledger.sweep();
    t.is(await kept(), 0);
  });

  test('repeats: a free preview is not taken twice', async (t) => {
    const { stores, account, reserve } = await start(t, standardBilling);
    t.is((await (await reserve(named('a'), 'preview')).settle()).charged as number, 0);
    await (await reserve(named('a'), 'preview')).settle();
    t.is((await stores.ledger.balance(account)).freeCalls, 49);
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('repeats: auto keeps its size, whatever the balance is by now', async (t) => {
    const { stores, account, reserve, balance } = await start(t);
    await (await reserve(named('a'), 'auto')).settle();
    await stores.ledger.post(account, { kind: 'adjust', amount: credits(-8.75) });
    t.is((await reserve(named('a'), 'auto')).tier, 'full');
    t.is(await balance(), credits(0.25));
  });

  test('repeats: a preview does not pay for a full result, nor a full one for a preview', async (t) => {
    const { reserve, cost } = await start(t);
    await (await reserve(named('a'), 'preview')).settle();
    t.is(await cost(named('a'), 'full'), credits(1));
    await (await reserve(named('b'), 'full')).settle();
    t.is(await cost(named('b'), 'preview'), credits(0.25));
  });

  test('repeats: overlapping reservations for the same content are charged once', async (t) => {
    // The preview is a free one.
    for (const [size, price] of [
      ['full', credits(1)],
      ['preview', quarters(0)],
    ] as const) {
      const { stores, account, reserve } = await start(t, standardBilling);
      const before = await stores.ledger.balance(account);
      const [first, second] = [await reserve(named('a'), size), await reserve(named('a'), size)];
      const { charged, charge } = await first.settle();
      t.deepEqual([charged, charge], [price, first.id]);
      t.deepEqual(await second.settle(), { charged: quarters(0), payment: undefined, charge: first.id });
      const after = {
        credits: quarters(before.credits - price),
        freeCalls: before.freeCalls - Number(size === 'preview'),
      };
      t.deepEqual(await stores.ledger.balance(account), after);
      t.deepEqual(await stores.ledger.verify(), []);
      // Both may answer with the one charge, which is valid until both are released.
      await first.release();
      t.deepEqual(await stores.ledger.balance(account), after);
      await second.release();
      t.deepEqual(await stores.ledger.balance(account), before);
      t.is(await stores.ledger.openReservations(), 0);
      t.deepEqual(await stores.ledger.verify(), []);
      t.is((await stores.ledger.usage()).length, 0);
    }
  });

  test('repeats: overlapping reservations of auto are charged once, whatever size each resolved to', async (t) => {
    for (const fullFirst of [true, false]) {
      const { stores, account, reserve, balance } = await start(t);
      await stores.ledger.post(account, { kind: 'adjust', amount: credits(-8.75) });
      const [larger, smaller] = [await reserve(named('a'), 'auto'), await reserve(named('a'), 'auto')];
      t.deepEqual([larger.tier, smaller.tier], ['full', 'preview']);
      const [first, second] = fullFirst ? [larger, smaller] : [smaller, larger];
      const cost = fullFirst ? credits(1) : credits(0.25);
      t.is((await first.settle()).charged, cost);
      t.deepEqual(await second.settle(), { charged: quarters(0), payment: undefined, charge: first.id });
      for (const each of [second, first]) await each.deliver();
      t.is(await balance(), quarters(credits(1.25) - cost));
      t.is((await stores.ledger.usage()).length, 1);
      t.deepEqual(await stores.ledger.verify(), []);
    }
  });

  test('repeats: overlapping reservations of different sizes are different work', async (t) => {
    const { reserve, balance } = await start(t);
    const [first, second] = [await reserve(named('a'), 'preview'), await reserve(named('a'), 'full')];
    t.is((await first.settle()).charged, credits(0.25));
    t.is((await second.settle()).charged, credits(1));
    t.is(await balance(), credits(8.75));
  });

  test('repeats: the charge of an answer being sent cannot be refunded by another request', async (t) => {
    const { stores, reserve, balance } = await start(t);
    const first = await reserve(named('a'));
    await first.settle();
    const again = await reserve(named('a'));
    await again.release();
    const settled = await reserve(named('a'));
    await settled.settle();
    await settled.release();
    t.is(await balance(), credits(9));
    await first.deliver();
    t.is(await balance(), credits(9));
    t.is(await stores.ledger.openReservations(), 0);
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('repeats: a charge whose server died remains valid through the repeat that is delivered', async (t) => {
    const { stores, account, reserve, balance } = await start(t);
    const first = await reserve(named('a'));
    await first.settle();
    const living = await testServer(t, stores, { billing: noFreePreviews, clock: stores.clock });
    // Its start released everything without a server; later ones do the same for what comes after.
    t.is(await balance(), credits(10));
    const second = await reserve(named('a'));
    await second.settle();
    const again = await reserveIn(living, account, named('a'), 'full');
    t.is(await balance(), credits(9), 'a repeat takes nothing');
    await again.settle();
    // This ledger has no lease: its answers count as those of a dead server.
    t.is(await living.ledger.recover(), 1);
    t.is(await balance(), credits(9));
    await again.deliver();
    t.is(await balance(), credits(9));
    t.is(await stores.ledger.openReservations(), 0);
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('repeats: a charge is refunded with the last answer that could have carried it', async (t) => {
    for (const how of ['release', 'recover'] as const) {
      const { stores, account, reserve, cost } = await start(t, standardBilling);
      for (const size of ['full', 'preview'] as const) {
        const first = await reserve(named(size), size);
        await first.settle();
        const again = await reserve(named(size), size);
        if (how === 'recover') await again.settle();
        else {
          await first.release();
          await again.release();
        }
      }
      if (how === 'recover') t.is(await stores.ledger.recover(), 4);
      t.deepEqual(await stores.ledger.balance(account), { credits: credits(10), freeCalls: 50 }, how);
      t.is(await stores.ledger.openReservations(), 0);
      t.is(await cost(named('full')), credits(1));
      t.deepEqual(await stores.ledger.verify(), []);
    }
  });

  test('repeats: a delivered answer stays charged, whatever happens to the others', async (t) => {
    const { reserve, balance, stores } = await start(t);
    const first = await reserve(named('a'));
    await first.settle();
    const second = await reserve(named('a'));
    const third = await reserve(named('a'));
    await second.settle();
    await second.deliver();
    await third.release();
    await first.release();
    t.is(await balance(), credits(9));
    t.is(await stores.ledger.openReservations(), 0);
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('repeats: a charge from a time to come, as after the clock was set back, carries over to no other work', async (t) => {
    const { stores, reserve, balance, cost } = await start(t);
    const first = await reserve(named('a'));
    await first.settle();
    await first.deliver();
    stores.clock.forward(-60_000);
    t.is(await cost(named('a')), quarters(0), 'clocks that are set by a minute are no matter');
    stores.clock.forward(-1);
    t.is(await cost(named('a')), credits(1));
    stores.clock.forward(-2 * 86_400_000);
    t.is(await cost(named('a')), credits(1));
    t.is(await balance(), credits(7));
    t.deepEqual(await stores.ledger.verify(), []);
  });

  test('repeats: charges are remembered over a restart', async (t) => {
    const { stores, account, reserve } = await start(t);
    const first = await reserve(named('a'));
    await first.settle();
    await first.deliver();
    await stores.close();
    const server = await testServer(t, stores, { billing: noFreePreviews, clock: stores.clock });
    await reserveIn(server, account, named('a'), 'full');
    t.is((await server.ledger.balance(account)).credits, credits(9));
  });
}
