import type { TestFn } from 'ava';
import type { ServedBooks } from '../../src/billing/books.ts';
import { quarters, standardBilling } from '../../src/billing/price.ts';
import type { Reservation, ReserveRequest } from '../../src/billing/reservation.ts';
import { type NewPlace, TestClock, testServer } from '../support/books.ts';

/** The rules of CONTRACT section 5 once more, as simply as they can be said. Amounts in quarter credits. */
class Oracle {
  balance = 0;
  readonly purchases = new Map<string, number>();
  readonly calls: {
    free: boolean;
    price: number;
    madeAt: number;
    day: string;
    state: 'held' | 'pending' | 'settled' | 'released' | 'refunded';
  }[] = [];

  /** Free previews of a day ('2026-11-21') or month ('2026-11') that were not given back. */
  freeUsed(period: string): number {
    let used = 0;
    for (const { free, state, day } of this.calls) {
      if (free && state !== 'released' && state !== 'refunded' && day.startsWith(period)) used++;
    }
    return used;
  }

  reserve(
    request: ReserveRequest,
    now: number,
  ): { tier: string; payment: string; price: number } | undefined {
    const large = request.size === 'auto' && request.pixels > 250_000 && this.balance >= 4;
    const tier = request.size === 'full' || large ? 'full' : 'preview';
    const date = new Date(now).toISOString();
    const free =
      tier === 'preview' && this.freeUsed(date.slice(0, 7)) < 50 && this.freeUsed(date.slice(0, 10)) < 10;
    const price = free ? 0 : tier === 'full' ? 4 : 1;
    if (price > this.balance) return undefined;
    this.balance -= price;
    this.calls.push({ free, price, madeAt: now, day: date.slice(0, 10), state: 'held' });
    return { tier, payment: free ? 'free' : tier, price };
  }

  settle(index: number, delivery: 'done' | 'pending'): number {
    const call = this.at(index);
    if (call.state === 'held') call.state = delivery === 'done' ? 'settled' : 'pending';
    return call.state === 'released' || call.state === 'refunded' ? 0 : call.price;
  }

  giveBack(index: number, from: 'held' | 'pending', to: 'released' | 'refunded'): void {
    const call = this.at(index);
    if (call.state !== from) return;
    call.state = to;
    this.balance += call.price;
  }

  delivered(index: number): void {
    const call = this.at(index);
    if (call.state === 'pending') call.state = 'settled';
  }

  sweep(now: number): void {
    for (const [index, { madeAt }] of this.calls.entries()) {
      if (madeAt + 900_000 > now) continue;
      this.giveBack(index, 'held', 'released');
      this.delivered(index);
    }
  }

  crash(): void {
    for (const index of this.calls.keys()) {
      this.giveBack(index, 'held', 'released');
      this.giveBack(index, 'pending', 'refunded');
    }
  }

  get open(): number {
    return this.calls.reduce((sum, { state }) => sum + Number(state === 'held' || state === 'pending'), 0);
  }

  at(index: number) {
    const call = this.calls[index];
    if (!call) throw new RangeError(`no call ${index}`);
    return call;
  }
}

/** mulberry32: the same steps for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The ledger against the oracle; registers one test with `test`. */
export function testLedgerModel(test: TestFn, newPlace: NewPlace, steps: number): void {
  test(`the books agree with a simple oracle over ${steps} random steps`, async (t) => {
    t.timeout(180_000);
    const seed = Date.now() % 1e9;
    t.log(`seed ${seed}`);
    const random = randomFrom(seed);
    const below = (n: number) => Math.floor(random() * n);
    const billing = standardBilling;
    const place = await newPlace(t);
    const clock = new TestClock();
    let books: ServedBooks = await testServer(t, place, { billing, clock });
    const accounts: { id: string; oracle: Oracle; handles: { index: number; reservation: Reservation }[] }[] =
      [];
    for (const name of ['a', 'b']) {
      const { id } = await books.accounts.create(name);
      accounts.push({ id, oracle: new Oracle(), handles: [] });
    }
    let differences = 0;
    const seen = new Map<string, number>();
    const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);

    for (let step = 0; step < steps; step++) {
      const account = accounts[below(2)];
      if (!account) throw new Error('two accounts');
      const { id, oracle, handles } = account;
      // Mostly one of the last few, which are likely to be open; sometimes any that ever was.
      const back = below(random() < 0.8 ? Math.min(12, handles.length) : handles.length);
      const handle = handles[handles.length - 1 - back];
      const dice = random();

      if (dice < 0.4) {
        const requestId = `r${step}`;
        const size = (['preview', 'full', 'auto'] as const)[below(3)] ?? 'auto';
        const request: ReserveRequest =
          size === 'auto' ? { size, requestId, pixels: 200_000 + below(100_000) } : { size, requestId };
        const expected = oracle.reserve(request, clock.at);
        const outcome = await books.ledger.reserve(id, request);
        if (outcome.outcome === 'reserved') {
          const { tier, payment, charge } = outcome.reservation;
          t.deepEqual({ tier, payment, price: charge as number }, expected, `step ${step}`);
          handles.push({ index: oracle.calls.length - 1, reservation: outcome.reservation });
          count(`reserve ${payment}`);
        } else {
          t.is(expected, undefined, `step ${step}`);
          t.is(outcome.balance as number, oracle.balance);
          count('insufficient');
        }
      } else if (dice < 0.65 && handle) {
        const delivery = random() < 0.5 ? 'done' : 'pending';
        t.is(
          (await handle.reservation.settle(delivery)) as number,
          oracle.settle(handle.index, delivery),
          `step ${step}`,
        );
        count(`settle ${delivery}`);
      } else if (dice < 0.78 && handle) {
        oracle.giveBack(handle.index, 'held', 'released');
        await handle.reservation.release();
        count('release');
      } else if (dice < 0.85 && handle) {
        oracle.delivered(handle.index);
        await handle.reservation.delivered();
        count('delivered');
      } else if (dice < 0.89) {
        const earlier = [...oracle.purchases.keys()][below(oracle.purchases.size * 4)];
        const reference = earlier ?? `evt_${step}`;
        const known = oracle.purchases.get(reference);
        const amount = known ?? 1 + below(10);
        if (known === undefined) {
          oracle.purchases.set(reference, amount);
          oracle.balance += amount;
        }
        const outcome = await books.ledger.post(id, {
          kind: 'purchase',
          reference,
          amount: quarters(amount),
        });
        t.is(outcome.outcome, known === undefined ? 'posted' : 'duplicate', `step ${step}`);
        count(known === undefined ? 'purchase' : 'purchase repeated');
      } else if (dice < 0.9) {
        const amount = quarters(-1 - below(6));
        const enough = oracle.balance + amount >= 0;
        if (enough) oracle.balance += amount;
        t.is(
          (await books.ledger.post(id, { kind: 'adjust', amount })).outcome,
          enough ? 'posted' : 'insufficient',
        );
        count('adjust');
      } else if (dice < 0.97) {
        clock.forward(below(100) === 0 ? below(40) * 86_400_000 : below(1_200_000));
        count('time');
      } else if (dice < 0.99) {
        for (const { oracle } of accounts) oracle.sweep(clock.at);
        await books.ledger.sweep();
        count('sweep');
      } else {
        for (const { oracle } of accounts) oracle.crash();
        await books.close();
        books = await testServer(t, place, { billing, clock });
        // Reservations of the dead server: the use case is gone with it.
        for (const { handles } of accounts) handles.length = 0;
        count('crash');
      }

      const month = new Date(clock.at).toISOString().slice(0, 7);
      for (const { id, oracle } of accounts) {
        const { credits, freeCalls } = await books.ledger.balance(id);
        if (credits !== oracle.balance || freeCalls !== 50 - oracle.freeUsed(month)) differences++;
      }
      const open = accounts.reduce((sum, { oracle }) => sum + oracle.open, 0);
      if ((await books.ledger.openReservations()) !== open) differences++;
      if (differences > 0) return t.fail(`The books and the oracle differ after step ${step}, seed ${seed}.`);
      if (step % 500 === 499) t.deepEqual(await books.ledger.verify(), []);
    }

    t.log(Object.fromEntries(seen));
    // Every kind of step was there, or the test proved less than it says.
    for (const what of ['free', 'preview', 'full'])
      t.true((seen.get(`reserve ${what}`) ?? 0) > steps / 200, what);
    for (const what of [
      'insufficient',
      'release',
      'settle pending',
      'purchase repeated',
      'adjust',
      'sweep',
      'crash',
    ]) {
      t.true((seen.get(what) ?? 0) > steps / 500, what);
    }
  });
}
