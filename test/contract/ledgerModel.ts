import type { TestFn } from 'ava';
import { isInsufficientCredits } from '../../src/billing/insufficientCredits.ts';
import { Ledger } from '../../src/billing/ledger.ts';
import { formatCredits, quarters, standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import type { Reservation, ReserveRequest } from '../../src/billing/types.ts';
import type { ChargedFor } from '../../src/idempotency/chargedContent.ts';
import type { ChargeHandle } from '../../src/idempotency/sharedResult.ts';
import { InDoubt, StoreError } from '../../src/store/error.ts';
import { NodeTable } from '../../src/store/nodeTable.ts';
import { withTransactions } from '../support/database.ts';
import { randomSteps } from '../support/randomSteps.ts';
import { type NewPlace, TestClock, undefinedIfInsufficient, withDisk } from '../support/stores.ts';

const nodes = 3;
const forMs = 600_000;
const lifeMs = 900_000;
/** A charge that is further ahead of the clock does not carry over. */
const aheadMs = 60_000;

interface Call {
  readonly node: string;
  readonly free: boolean;
  readonly price: number;
  readonly tier: string;
  readonly auto: boolean;
  readonly day: string;
  readonly content: string | undefined;
  readonly reservedAt: number;
  readonly expiresAt: number;
  /** The call whose charge it repeats, from its reservation on. */
  repeatOf: Call | undefined;
  state: 'held' | 'charged' | 'released' | 'refunded';
}

/** An answer in progress: what is reserved for it, and the charge it may carry while no answer with that was delivered. */
interface Open {
  readonly call: Call | undefined;
  readonly node: string;
  expiresAt: number;
  held: boolean;
  charge: Call | undefined;
}

/** An independent, minimal implementation of docs/contract.md sections 5.1 and 8. Amounts in quarter credits. */
class Oracle {
  balance = 0;
  readonly purchases = new Map<string, number>();
  readonly calls: Call[] = [];
  readonly charged = new Map<string, { call: Call; until: number }>();
  open = new Set<Open>();

  /** Free previews of a day ('2026-11-21') or month ('2026-11') that were not returned. */
  freeUsed(period: string): number {
    let used = 0;
    for (const { free, state, day } of this.calls)
      if (free && state !== 'released' && state !== 'refunded' && day.startsWith(period)) used++;
    return used;
  }

  standing(content: string | undefined, now: number): Call | undefined {
    const known = content === undefined ? undefined : this.charged.get(content);
    if (!known || known.until <= now || known.call.reservedAt > now + aheadMs) return undefined;
    return known.call.state === 'charged' ? known.call : undefined;
  }

  isUndelivered(call: Call): boolean {
    return [...this.open].some(({ charge }) => charge === call);
  }

  reserve(request: ReserveRequest, node: string, now: number): { call: Call; open: Open } | undefined {
    const content = request.repeat?.content;
    const known = this.standing(content, now);
    const repeatOf = known && (request.size === 'auto' || request.size === known.tier) ? known : undefined;
    const large = request.size === 'auto' && this.balance >= 4;
    const tier = repeatOf?.tier ?? (request.size === 'full' || large ? 'full' : 'preview');
    const { free, price } = this.priceOf(tier, repeatOf, now);
    if (price > this.balance) return undefined;
    this.balance -= price;
    const expiresAt = now + lifeMs;
    const day = new Date(now).toISOString().slice(0, 10);
    const auto = request.size === 'auto';
    const call: Call = {
      ...{ node, free, price, tier, auto, day, content, expiresAt, repeatOf },
      reservedAt: now,
      state: 'held',
    };
    this.calls.push(call);
    const charge = repeatOf && this.isUndelivered(repeatOf) ? repeatOf : undefined;
    const open: Open = { call, node, expiresAt, held: true, charge };
    this.open.add(open);
    return { call, open };
  }

  priceOf(tier: string, repeatOf: Call | undefined, now: number): { free: boolean; price: number } {
    const date = new Date(now).toISOString();
    const free =
      !repeatOf &&
      tier === 'preview' &&
      this.freeUsed(date.slice(0, 7)) < 50 &&
      this.freeUsed(date.slice(0, 10)) < 10;
    return { free, price: free || repeatOf ? 0 : tier === 'full' ? 4 : 1 };
  }

  /** Returns the charged call and the amount to report, or undefined if nothing can be charged any more. */
  settle(call: Call, open: Open, now: number): { charge: Call; charged: number } | undefined {
    const held = open.held && this.open.has(open);
    const known = this.standing(call.content, now);
    const repeatOf = call.repeatOf?.state === 'charged' ? call.repeatOf : undefined;
    const other = repeatOf ?? (known && (call.auto || known.tier === call.tier) ? known : undefined);
    if (other) {
      if (held && other !== repeatOf) this.giveBack(call, 'released');
      else if (held) call.state = 'charged';
      this.carry(open, now, this.isUndelivered(other) ? other : undefined);
      return { charge: other, charged: 0 };
    }
    let charged = call;
    if (!held || call.repeatOf) {
      const { free, price } = this.priceOf(call.tier, undefined, now);
      if (price > this.balance) return undefined;
      if (held) this.giveBack(call, 'released');
      this.balance -= price;
      const day = new Date(now).toISOString().slice(0, 10);
      charged = { ...call, free, price, day, reservedAt: now, repeatOf: undefined };
      this.calls.push(charged);
    }
    charged.state = 'charged';
    if (call.content !== undefined) this.charged.set(call.content, { call: charged, until: now + forMs });
    this.carry(open, now, charged);
    return { charge: charged, charged: charged.price };
  }

  /** Nothing is reserved for it any more. */
  carry(open: Open, now: number, charge: Call | undefined): void {
    if (!this.open.has(open)) open.expiresAt = now + lifeMs;
    open.held = false;
    open.charge = charge;
    if (charge) this.open.add(open);
    else this.open.delete(open);
  }

  giveBack(call: Call, to: 'released' | 'refunded'): void {
    call.state = to;
    this.balance += call.price;
  }

  release(open: Open): void {
    if (!this.open.delete(open)) return;
    if (open.held && open.call) this.giveBack(open.call, 'released');
    if (open.charge?.state === 'charged' && !this.isUndelivered(open.charge))
      this.giveBack(open.charge, 'refunded');
  }

  deliver(charge: Call): void {
    for (const open of this.open) {
      if (open.charge !== charge) continue;
      open.charge = undefined;
      if (!open.held) this.open.delete(open);
    }
  }

  sweep(now: number): void {
    for (const [content, { until }] of this.charged) if (until <= now) this.charged.delete(content);
    const over = [...this.open].filter(({ expiresAt }) => expiresAt <= now);
    // Answers being sent come first: what they deliver is not refunded together with work that repeats them.
    for (const open of over) if (!open.held && open.charge) this.deliver(open.charge);
    for (const open of over) this.release(open);
  }

  crash(node: string): void {
    for (const open of this.open) if (open.node === node) this.release(open);
  }

  refund(call: Call): boolean {
    if (call.state !== 'charged') return false;
    this.deliver(call);
    this.giveBack(call, 'refunded');
    return true;
  }
}

interface Handle {
  readonly node: number;
  readonly open: Open;
  call: Call | undefined;
  readonly reservation: Reservation | undefined;
  readonly answer: ChargeHandle;
  charge: Call | undefined;
  /** Result of `settle`, which is called once. */
  settled?: Promise<unknown>;
}

/** Outcomes of a transaction. */
type Weather = 'fine' | 'away' | 'in doubt';

/**
 * The ledgers of several servers on one database against the oracle, which predicts every balance, every free call and
 * the open answers after every step. Registers one test with `test`.
 */
export function testLedgerModel(test: TestFn, newPlace: NewPlace, steps: number): void {
  test(`the ledger agrees with a simple oracle over ${steps} random steps`, async (t): Promise<void> => {
    t.timeout(300_000);
    withDisk(t);
    const { seed, next, below, seen, count } = randomSteps(t);
    const billing = standardBilling;
    const place = await newPlace(t);
    const clock = new TestClock();
    const { now } = clock;
    const stores = await openStores({ ...place, billing, now });
    t.teardown(stores.close);
    const table = new NodeTable(stores.database);

    let weather: Weather = 'fine';
    const unavailable = () =>
      new StoreError('STORE_UNAVAILABLE', 'away', weather === 'away' ? {} : { cause: new InDoubt('lost') });
    const database = withTransactions(stores.database, async (work) => {
      if (weather === 'away') throw unavailable();
      const result = await stores.database.transaction(work);
      if (weather === 'in doubt') throw unavailable();
      return result;
    });
    let serial = 0;
    const start = async () => {
      const id = `node ${serial++}`;
      await table.renew(id, 1e12);
      /** Ends that this server could not write yet. */
      const later: (() => void)[] = [];
      return { id, later, ledger: new Ledger(database, { billing, now, node: id }) };
    };
    const servers = await Promise.all(Array.from({ length: nodes }, start));
    const accounts: { id: string; oracle: Oracle; handles: Handle[] }[] = [];
    for (const name of ['a', 'b'])
      accounts.push({ id: (await stores.accounts.create(name)).id, oracle: new Oracle(), handles: [] });
    const numbers = new Map<Call, number>();
    const isUnavailable = (error: unknown) =>
      error instanceof StoreError && error.code === 'STORE_UNAVAILABLE';

    for (let step = 0; step < steps; step++) {
      const account = accounts[below(2)];
      const number = below(nodes);
      const server = servers[number];
      if (!account || !server) throw new Error('two accounts, three servers');
      const { id, oracle, handles } = account;
      // Mostly one of the last few, which are likely to be open; sometimes any.
      const back = below(next() < 0.8 ? Math.min(12, handles.length) : handles.length);
      const handle = handles[handles.length - 1 - back];
      const owner = handle && servers[handle.node];
      const saysBalance = ({ message }: Error) =>
        message.endsWith(`the balance is ${formatCredits(quarters(oracle.balance))}.`);
      const dice = next();
      weather = next() < 0.94 ? 'fine' : next() < 0.5 ? 'away' : 'in doubt';
      /** What the ledger learns, now or through the server's next sweep. */
      const end = async (of: typeof server, change: () => void, call: () => Promise<unknown>) => {
        // Repeated if the outcome was unknown, which changes nothing.
        if (weather !== 'away') change();
        if (weather !== 'fine') of.later.push(change);
        await call();
      };

      if (dice < 0.3) {
        const requestId = `r${step}`;
        const size = (['preview', 'full', 'auto'] as const)[below(3)] ?? 'auto';
        const content = next() < 0.7 ? `${size} ${below(4)}` : undefined;
        const repeat = content === undefined ? undefined : { content, forMs };
        const request: ReserveRequest = { size, requestId, repeat };
        const quoted =
          weather === 'fine'
            ? await server.ledger.quote(id, request).catch(undefinedIfInsufficient)
            : undefined;
        const expected = weather === 'away' ? undefined : oracle.reserve(request, server.id, clock.at);
        if (weather === 'in doubt' && expected) server.later.push(() => oracle.release(expected.open));
        try {
          const reservation = await server.ledger.reserve(id, request);
          const { tier, payment } = reservation;
          if (weather === 'fine') t.is(quoted, tier, `step ${step}`);
          if (!expected) throw new Error(`step ${step}: reserved, seed ${seed}`);
          const { call, open } = expected;
          t.deepEqual(
            { tier, payment },
            { tier: call.tier, payment: call.free ? 'free' : call.tier } as never,
            `step ${step}`,
          );
          numbers.set(call, reservation.id);
          handles.push({ node: number, open, call, reservation, answer: reservation, charge: undefined });
          count(call.repeatOf ? 'reserve repeat' : `reserve ${payment}`);
        } catch (error) {
          if (isInsufficientCredits(error)) {
            t.is(expected, undefined, `step ${step}`);
            t.is(quoted, undefined, `step ${step}`);
            t.true(saysBalance(error), `step ${step}`);
            count('insufficient');
          } else if (!isUnavailable(error) || weather === 'fine') throw error;
          else count('reserve unavailable');
        }
      } else if (dice < 0.5 && handle?.settled !== undefined) {
        t.is(handle.reservation?.settle(), handle.settled as never, 'once');
      } else if (dice < 0.5 && handle?.reservation && handle.call) {
        const { call, open, reservation } = handle;
        const wasOpen = oracle.open.has(open);
        const expected = weather === 'away' ? undefined : oracle.settle(call, open, clock.at);
        const settling = reservation.settle();
        handle.settled = settling;
        try {
          const settlement = await settling;
          t.is(settlement.charged, expected?.charged as never, `step ${step}`);
          const { charge } = expected ?? {};
          if (!charge || settlement.charge === undefined)
            throw new Error(`step ${step}: settled, seed ${seed}`);
          if (!numbers.has(charge)) numbers.set(charge, settlement.charge);
          t.is(settlement.charge, numbers.get(charge) as never, `step ${step}`);
          handle.charge = charge;
          if (charge.repeatOf === undefined && charge.content === call.content) handle.call = charge;
          count(
            wasOpen ? 'settle' : expected?.charged === 0 ? 'settle late with a charge' : 'settle late anew',
          );
        } catch (error) {
          if (isInsufficientCredits(error) && !expected && weather !== 'away') {
            t.true(saysBalance(error), `step ${step}`);
            count('settle in vain');
          } else if (!isUnavailable(error) || weather === 'fine') throw error;
          else count('settle unavailable');
        }
      } else if (dice < 0.58 && handle && owner) {
        await end(
          owner,
          () => oracle.release(handle.open),
          () => handle.answer.release(),
        );
        count(handle.call?.state === 'charged' ? 'release after settle' : 'release');
      } else if (dice < 0.66 && handle && owner) {
        const { charge } = handle;
        if (charge) {
          await end(
            owner,
            () => oracle.deliver(charge),
            () => handle.answer.deliver(),
          );
        } else await handle.answer.deliver();
        count('deliver');
      } else if (dice < 0.71 && handle?.call) {
        const { call } = handle;
        const charge = numbers.get(call);
        if (charge === undefined) throw new Error('a call without a number');
        weather = 'fine';
        const isFor = ({ accountId, content }: ChargedFor) => accountId === id && content === call.content;
        const answer = await server.ledger.addAnswer(charge, isFor);
        const known = call.content !== undefined && oracle.charged.get(call.content)?.call === call;
        t.is(answer !== undefined, known && call.state === 'charged', `step ${step}`);
        if (answer) {
          const undelivered = oracle.isUndelivered(call);
          const expiresAt = clock.at + lifeMs;
          const open: Open = { call: undefined, node: server.id, expiresAt, held: false, charge: call };
          if (undelivered) oracle.open.add(open);
          handles.push({ node: number, open, call: undefined, reservation: undefined, answer, charge: call });
          count(undelivered ? 'answer with' : 'answer with a final one');
        }
      } else if (dice < 0.75) {
        weather = 'fine';
        const earlier = [...oracle.purchases.keys()][below(oracle.purchases.size * 4)];
        const reference = earlier ?? `evt_${step}`;
        const known = oracle.purchases.get(reference);
        const amount = known ?? 1 + below(8);
        if (known === undefined) {
          oracle.purchases.set(reference, amount);
          oracle.balance += amount;
        }
        const kind = 'purchase';
        const outcome = await stores.ledger.post(id, { kind, reference, amount: quarters(amount) });
        t.is(outcome.outcome, known === undefined ? 'posted' : 'duplicate', `step ${step}`);
        count(known === undefined ? 'purchase' : 'purchase repeated');
      } else if (dice < 0.77) {
        weather = 'fine';
        const amount = quarters(-1 - below(6));
        const enough = oracle.balance + amount >= 0;
        if (enough) oracle.balance += amount;
        t.is(
          (await stores.ledger.post(id, { kind: 'adjust', amount })).outcome,
          enough ? 'posted' : 'insufficient',
        );
        count('adjust');
      } else if (dice < 0.78 && handle?.call?.state === 'charged' && !handle.call.repeatOf) {
        weather = 'fine';
        const charge = numbers.get(handle.call) ?? 0;
        t.is(await stores.ledger.refund(id, charge), oracle.refund(handle.call), `step ${step}`);
        count('refund');
      } else if (dice < 0.95) {
        const far = below(100) === 0;
        const by = far ? below(40) * 86_400_000 : below(next() < 0.5 ? 20_000 : 400_000);
        // Mostly forward; sometimes the clock is set back.
        clock.forward(next() < 0.15 ? -by : by);
        count('time');
      } else if (dice < 0.98) {
        weather = 'fine';
        for (const change of server.later.splice(0)) change();
        for (const { oracle } of accounts) oracle.sweep(clock.at);
        await server.ledger.sweep();
        count('sweep');
      } else {
        weather = 'fine';
        await table.remove(server.id);
        for (const { oracle } of accounts) oracle.crash(server.id);
        // Two servers that notice at the same time.
        await Promise.all(servers.filter((one) => one !== server).map(({ ledger }) => ledger.recover()));
        for (const one of accounts) one.handles = one.handles.filter(({ node }) => node !== number);
        servers[number] = await start();
        count('crash');
      }

      const month = new Date(clock.at).toISOString().slice(0, 7);
      for (const { id, oracle } of accounts) {
        const { credits, freeCalls } = await stores.ledger.balance(id);
        const expected = { credits: oracle.balance, freeCalls: 50 - oracle.freeUsed(month) };
        if (credits !== expected.credits || freeCalls !== expected.freeCalls) {
          t.deepEqual({ credits, freeCalls }, expected as never, `after step ${step}, seed ${seed}`);
          return;
        }
      }
      const open = accounts.reduce((sum, { oracle }) => sum + oracle.open.size, 0);
      if ((await stores.ledger.openReservations()) !== open) {
        t.is(await stores.ledger.openReservations(), open, `open after step ${step}, seed ${seed}`);
        return;
      }
      if (step % 500 === 499) t.deepEqual(await stores.ledger.verify(), []);
    }

    t.log(Object.fromEntries([...seen].sort()));
    // Every kind of step must have occurred, or the test proves less than it claims.
    for (const what of ['reserve free', 'reserve full', 'reserve repeat', 'settle', 'release'])
      t.true((seen.get(what) ?? 0) > steps / 200, what);
    for (const what of [
      'reserve preview',
      'insufficient',
      'reserve unavailable',
      'settle late anew',
      'settle late with a charge',
      'settle unavailable',
      'release after settle',
      'deliver',
      'answer with',
      'purchase repeated',
      'adjust',
      'sweep',
      'crash',
    ])
      t.true((seen.get(what) ?? 0) > steps / 1000, what);
    for (const what of ['settle in vain', 'answer with a final one']) t.true(seen.has(what), what);
  });
}
