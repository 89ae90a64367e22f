import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import {
  FairScheduler,
  type FairSchedulerOptions,
  type FairSchedulerOutcome,
  type Job,
} from '../../src/limits/fairScheduler.ts';
import { MemoryBudget } from '../../src/limits/memoryBudget.ts';
import { random } from '../fixtures/random.ts';

const forever = () => new AbortController().signal;
const never = Number.POSITIVE_INFINITY;

class Clock {
  at = 0;
  readonly now = () => this.at;
}

function open(options: Partial<FairSchedulerOptions> = {}) {
  const clock = new Clock();
  const memory = new MemoryBudget();
  return {
    clock,
    memory,
    scheduler: new FairScheduler({ running: 1, waitMs: never, memory, ...options }, clock.now),
  };
}

const work = (more: Partial<Job> = {}): Job => ({
  account: 'a',
  ms: 1000,
  bytes: 0,
  heavy: false,
  deadline: never,
  ...more,
});

function leave(outcome: FairSchedulerOutcome): void {
  if (outcome.outcome !== 'admitted') throw new Error(outcome.outcome);
  outcome.release(true);
}

/** Requests slots for these jobs, one after another, and records the order in which they get one. */
async function orderOf(scheduler: FairScheduler, works: readonly (Job & { readonly name: string })[]) {
  const order: string[] = [];
  const first = await scheduler.acquire(work({ account: 'first', ms: 1 }), forever());
  const all = works.map(async (one) => {
    const outcome = await scheduler.acquire(one, forever());
    order.push(one.name);
    leave(outcome);
  });
  leave(first);
  await Promise.all(all);
  return order.join(' ');
}

test('jobs run up to the limit, wait up to the longest wait, and are refused beyond it', async (t) => {
  const { scheduler } = open({ running: 2, waitMs: 3000 });
  const first = await scheduler.acquire(work(), forever());
  await scheduler.acquire(work(), forever());
  // Half of the two running is ahead of the first that waits: 1, 2 and 3 seconds.
  const waiting = [1, 2, 3].map(() => scheduler.acquire(work(), forever()));
  t.like(scheduler.stats, { running: 2, waiting: 3, waitingMs: 3000 });
  t.deepEqual(await scheduler.acquire(work(), forever()), { outcome: 'busy', why: 'queue', retryAfter: 4 });
  leave(first);
  leave(first);
  t.is((await waiting[0])?.outcome, 'admitted');
  t.like(scheduler.stats, { running: 2, waiting: 2 });
});

test('jobs of equal length are admitted in order of arrival', async (t) => {
  const { scheduler } = open();
  const names = ['1', '2', '3', '4', '5'];
  t.is(
    await orderOf(
      scheduler,
      names.map((name) => ({ name, ...work() })),
    ),
    '1 2 3 4 5',
  );
  t.like(scheduler.stats, { running: 0, waiting: 0, waitingMs: 0 });
});

test('short jobs go before long ones that came a little earlier, but not before those that have waited long', async (t) => {
  const { scheduler, clock } = open();
  const first = await scheduler.acquire(work(), forever());
  const order: string[] = [];
  const ask = async (name: string, ms: number) => {
    const outcome = await scheduler.acquire(work({ ms }), forever());
    order.push(name);
    leave(outcome);
  };
  const all = [ask('long', 4000)];
  clock.at = 1000;
  all.push(ask('short', 400));
  clock.at = 60_000;
  all.push(ask('late', 400));
  leave(first);
  await Promise.all(all);
  t.deepEqual(order, ['short', 'long', 'late']);
});

test('accounts alternate by the work executed for them, however much they have queued', async (t) => {
  const { scheduler } = open();
  const many = Array.from({ length: 6 }, (_, i) => ({ name: `a${i}`, ...work({ account: 'a' }) }));
  const few = [0, 1].map((i) => ({ name: `b${i}`, ...work({ account: 'b' }) }));
  t.is(await orderOf(scheduler, [...many, ...few]), 'a0 b0 a1 b1 a2 a3 a4 a5');
  // A job of three times the length counts three times.
  const long = [0, 1].map((i) => ({ name: `c${i}`, ...work({ account: 'c', ms: 3000 }) }));
  const short = [0, 1, 2, 3, 4].map((i) => ({ name: `d${i}`, ...work({ account: 'd' }) }));
  t.is(await orderOf(scheduler, [...long, ...short]), 'c0 d0 d1 d2 c1 d3 d4');
});

test('an account with few jobs is admitted while another has filled its share of the queue', async (t) => {
  const { scheduler } = open({ waitMs: 5000 });
  await scheduler.acquire(work({ account: 'greedy' }), forever());
  const waiting: Promise<FairSchedulerOutcome>[] = [];
  for (let i = 0; i < 5; i++) waiting.push(scheduler.acquire(work({ account: 'greedy' }), forever()));
  t.is((await scheduler.acquire(work({ account: 'greedy' }), forever())).outcome, 'busy');
  t.truthy(scheduler.refusal('greedy', never));
  t.is(scheduler.refusal('modest', never), undefined);
  const modest = scheduler.acquire(work({ account: 'modest' }), forever());
  t.is(scheduler.stats.waiting, 6);
  void modest;
});

test('heavy jobs leave one slot to others', async (t) => {
  const { scheduler } = open({ running: 3 });
  const heavy = () => scheduler.acquire(work({ heavy: true, ms: 5000 }), forever());
  await Promise.all([heavy(), heavy()]);
  const third = heavy();
  t.like(scheduler.stats, { running: 2, waiting: 1 });
  const light = await scheduler.acquire(work({ ms: 300 }), forever());
  t.like(scheduler.stats, { running: 3, waiting: 1 });
  leave(light);
  t.like(scheduler.stats, { running: 2, waiting: 1 });
  void third;
  // A single slot is shared in turns.
  const { scheduler: one } = open();
  t.is((await one.acquire(work({ heavy: true }), forever())).outcome, 'admitted');
});

test('while only heavy jobs wait, a light one gets the slot that they leave at once', async (t) => {
  const { scheduler } = open({ running: 2, waitMs: 3000 });
  const heavy = () => scheduler.acquire(work({ account: 'greedy', heavy: true, ms: 30_000 }), forever());
  await heavy();
  void heavy();
  t.like(scheduler.stats, { running: 1, waiting: 1 });
  t.like(await heavy(), { outcome: 'busy' });
  const light = await scheduler.acquire(work({ account: 'b', ms: 300, deadline: 1000 }), forever());
  t.is(light.outcome, 'admitted');
  // The slot is taken now, and half of what runs is ahead.
  t.like(await scheduler.acquire(work({ account: 'c', ms: 300 }), forever()), { outcome: 'busy' });
});

test('a flood of heavy jobs, most of them refused, does not refuse light ones before their upload', async (t) => {
  const { scheduler } = open({ running: 2, waitMs: 30_000 });
  leave(await scheduler.acquire(work({ ms: 300 }), forever()));
  const heavy = { account: 'greedy', heavy: true, ms: 20_000, deadline: 25_000 };
  let refused = 0;
  for (let i = 0; i < 50; i++)
    void scheduler.acquire(work(heavy), forever()).then((outcome) => {
      if (outcome.outcome === 'busy' && outcome.why === 'deadline') refused += 1;
    });
  await turn();
  t.true(refused > 40, `${refused}`);
  t.is(scheduler.refusal('b', 10_000), undefined);
});

test('a job that cannot meet its deadline is refused at once', async (t) => {
  const { scheduler, clock } = open();
  const first = await scheduler.acquire(work(), forever());
  t.like(await scheduler.acquire(work({ deadline: 1200 }), forever()), { outcome: 'busy', why: 'deadline' });
  t.truthy(scheduler.refusal('a', 400));
  const inTime = scheduler.acquire(work({ deadline: 2000 }), forever());
  // Nothing else is running then, and an idle machine tries.
  clock.at = 1500;
  leave(first);
  t.is((await inTime).outcome, 'admitted');
});

test('a job whose deadline passed while it waited is dropped, not started', async (t) => {
  const { scheduler, clock } = open({ running: 2 });
  const first = await scheduler.acquire(work(), forever());
  await scheduler.acquire(work(), forever());
  const late = scheduler.acquire(work({ account: 'b', deadline: 3000 }), forever());
  clock.at = 2500;
  leave(first);
  t.like(await late, { outcome: 'busy', why: 'deadline' });
  t.like(scheduler.stats, { running: 1, waiting: 0 });
});

test('an idle machine runs a job that seems to take too long, so that the estimate can be corrected', async (t) => {
  const { scheduler } = open();
  t.is((await scheduler.acquire(work({ ms: 60_000, deadline: 1000 }), forever())).outcome, 'admitted');
});

test('an aborted job leaves the queue', async (t) => {
  const { scheduler } = open({ waitMs: 600 });
  const first = await scheduler.acquire(work(), forever());
  const leaving = new AbortController();
  const gone = scheduler.acquire(work(), leaving.signal);
  t.is((await scheduler.acquire(work(), forever())).outcome, 'busy');
  leaving.abort(new Error('gone'));
  await t.throwsAsync(gone, { message: 'gone' });
  const next = scheduler.acquire(work(), forever());
  leave(first);
  leave(await next);
  t.like(scheduler.stats, { running: 0, waiting: 0 });
  await t.throwsAsync(scheduler.acquire(work(), leaving.signal), { message: 'gone' });
});

test('a job waits for its memory, continues when some is freed, and is refused if it can never fit', async (t) => {
  const { scheduler, memory } = open({ running: 3 });
  memory.bound({ room: 1000e6, largestWork: 600e6 });
  t.is(memory.maxWork, 600e6);
  t.deepEqual(await scheduler.acquire(work({ bytes: 601e6 }), forever()), { outcome: 'too_large' });
  const first = await scheduler.acquire(work({ bytes: 600e6 }), forever());
  const second = scheduler.acquire(work({ bytes: 600e6 }), forever());
  t.like(scheduler.stats, { running: 1, waiting: 1 });
  leave(first);
  leave(await second);

  const body = memory.reserveUpload('a', 400e6);
  t.is(memory.reserveUpload('b', 1), undefined, 'bodies leave the largest work its room');
  const third = await scheduler.acquire(work({ bytes: 500e6 }), forever());
  const fourth = scheduler.acquire(work({ bytes: 200e6 }), forever());
  t.is(scheduler.stats.waiting, 1);
  body?.release();
  leave(await fourth);
  leave(third);
  t.like(memory.stats, { held: 0, working: 0 });
});

test('Retry-After is the time until the queue is empty at the measured service rate, 1 to 60 s', async (t) => {
  const { scheduler } = open({ waitMs: 0 });
  let place = await scheduler.acquire(work({ ms: 100 }), forever());
  const retryAfter = async () => {
    const outcome = await scheduler.acquire(work({ account: 'b', ms: 20_000 }), forever());
    return outcome.outcome === 'busy' ? outcome.retryAfter : 0;
  };
  t.is(await retryAfter(), 1);
  leave(place);
  place = await scheduler.acquire(work({ ms: 300_000 }), forever());
  t.is(await retryAfter(), 60);
  leave(place);

  // Jobs of a second take four.
  const slow = open();
  const turns = Array.from({ length: 200 }, () => slow.scheduler.acquire(work(), forever()));
  for (const turn of turns) {
    const outcome = await turn;
    slow.clock.at += 4000;
    leave(outcome);
  }
  t.true(Math.abs(slow.scheduler.stats.serviceRate - 0.25) < 0.02, String(slow.scheduler.stats.serviceRate));
});

/**
 * A machine that completes one millisecond of work per millisecond, for all running jobs together, with Poisson
 * arrivals; time is simulated. Actual durations differ from the estimates.
 */
async function simulate({
  load,
  waitMs,
  kinds,
  seconds = 600,
}: {
  readonly load: number;
  readonly waitMs: number;
  readonly kinds: readonly { readonly account: string; readonly ms: number; readonly share: number }[];
  readonly seconds?: number;
}) {
  const { clock, scheduler } = open({ running: 3, waitMs });
  const next = random(7);
  const mean = kinds.reduce((sum, { ms, share }) => sum + ms * share, 0);
  const working = new Map<{ kind: number; at: number }, { left: number; leave: () => void }>();
  const latencies: number[][] = kinds.map(() => []);
  let useful = 0;
  let arrival = 0;
  while (clock.at < seconds * 1000) {
    const least = Math.min(...[...working.values()].map(({ left }) => left * working.size), never);
    const step = Math.min(least, arrival - clock.at);
    clock.at += step;
    for (const one of working.values()) one.left -= step / working.size;
    for (const [request, one] of working) {
      if (one.left > 1e-6) continue;
      working.delete(request);
      latencies[request.kind]?.push(clock.at - request.at);
      useful += kinds[request.kind]?.ms ?? 0;
      one.leave();
    }
    if (clock.at >= arrival) {
      arrival = clock.at - (Math.log(1 - next()) * mean) / load;
      const kind = kinds.length > 1 && next() < (kinds[1]?.share ?? 0) ? 1 : 0;
      const { account = '', ms = 0 } = kinds[kind] ?? {};
      const request = { kind, at: clock.at };
      const deadline = clock.at + 120_000;
      const heavy = ms > 1600;
      if (scheduler.refusal(account, deadline) === undefined)
        void scheduler.acquire(work({ account, ms, heavy, deadline }), forever()).then((outcome) => {
          if (outcome.outcome !== 'admitted') return;
          const left = ms * (0.7 + 0.6 * next());
          const done = clock.at + left;
          working.set(request, { left, leave: () => outcome.release(true, clock.at - done) });
        });
    }
    await turn();
  }
  const quantile = (kind: number, q: number) => {
    const sorted = (latencies[kind] ?? []).toSorted((a, b) => a - b);
    return sorted[Math.floor(q * (sorted.length - 1))] ?? Number.NaN;
  };
  return { goodput: useful / (seconds * 1000), quantile, counts: latencies.map(({ length }) => length) };
}

test('at three times the load the machine is fully used, and admitted jobs wait alike', async (t) => {
  const kinds = [{ account: 'a', ms: 900, share: 1 }];
  const { goodput, quantile } = await simulate({ load: 3, waitMs: 30_000, kinds });
  t.true(goodput > 0.97, `${goodput}`);
  t.true(quantile(0, 0.99) < 3 * quantile(0, 0.5), `${quantile(0, 0.5)} ${quantile(0, 0.99)}`);
  t.true(quantile(0, 0.99) < 40_000, `${quantile(0, 0.99)}`);
});

test('at three times the load by one account, others are served as if it did not exist', async (t) => {
  const kinds = [
    { account: 'flood', ms: 900, share: 0.95 },
    { account: 'modest', ms: 900, share: 0.05 },
  ];
  const { goodput, quantile } = await simulate({ load: 3, waitMs: 30_000, kinds });
  t.true(goodput > 0.97, `${goodput}`);
  t.true(quantile(1, 0.95) < 6000, `${quantile(1, 0.95)}`);
});

test('previews among large images of one account are quick, and the large ones complete', async (t) => {
  const kinds = [
    { account: 'a', ms: 350, share: 0.8 },
    { account: 'a', ms: 5000, share: 0.2 },
  ];
  const { quantile, counts } = await simulate({ load: 0.9, waitMs: 60_000, kinds });
  t.true(quantile(0, 0.5) < 3000, `${quantile(0, 0.5)}`);
  t.true(quantile(0, 0.95) < 12_000, `${quantile(0, 0.95)}`);
  t.true((counts[1] ?? 0) > 60, `${counts}`);
});

test('what waits for longer than it may is refused then, whatever was predicted', async (t) => {
  const { scheduler } = open({ waitMs: 50 });
  await scheduler.acquire(work({ ms: 1 }), forever());
  const controller = new AbortController();
  const gone = scheduler.acquire(work({ account: 'c', ms: 1 }), controller.signal);
  controller.abort(new Error('gone'));
  await t.throwsAsync(gone, { message: 'gone' });
  t.like(await scheduler.acquire(work({ account: 'b', ms: 1 }), forever()), {
    outcome: 'busy',
    why: 'queue',
  });
  t.like(scheduler.stats, { running: 1, waiting: 0 });
});

test('slots of overdue jobs are lost: waits are longer, and none is waited for without any other', async (t) => {
  let overdue = 0;
  const { scheduler } = open({ running: 2, waitMs: 1500, overdue: () => overdue });
  for (const account of ['a', 'b']) await scheduler.acquire(work({ account }), forever());
  // Half of two running jobs is ahead: a second, or two with one slot.
  const leaving = new AbortController();
  const waiting = scheduler.acquire(work({ account: 'c' }), leaving.signal);
  leaving.abort(new Error('gone'));
  await t.throwsAsync(waiting, { message: 'gone' });
  overdue = 1;
  t.deepEqual(await scheduler.acquire(work({ account: 'c' }), forever()), {
    outcome: 'busy',
    why: 'queue',
    retryAfter: 2,
  });
  overdue = 2;
  t.deepEqual(await scheduler.acquire(work({ account: 'c', ms: 1 }), forever()), {
    outcome: 'busy',
    why: 'queue',
    retryAfter: 60,
  });
});

test('an account whose jobs take longer than was estimated has fewer of them', async (t) => {
  const { scheduler, clock } = open();
  const first = await scheduler.acquire(work({ account: 'first', ms: 1 }), forever());
  const order: string[] = [];
  const ask = async (account: string, took: number) => {
    const outcome = await scheduler.acquire(work({ account }), forever());
    order.push(account);
    clock.at += took;
    leave(outcome);
  };
  const all = Array.from({ length: 4 }, () => [ask('slow', 4000), ask('plain', 1000)]).flat();
  leave(first);
  await Promise.all(all);
  // Four plain jobs take as long as one that was thought to be as short.
  t.is(order.join(' '), 'slow plain plain plain plain slow slow slow');
});

test('jobs of one account that take much longer than was estimated leave slots to others', async (t) => {
  const { scheduler, clock } = open({ running: 3 });
  const ask = (account: string, more: Partial<Job> = {}) =>
    scheduler.acquire(work({ account, ms: 300, ...more }), forever());
  const [first, second] = [await ask('slow'), await ask('slow')];
  clock.at += 1200;
  const all = Array.from({ length: 6 }, () => ask('slow'));
  t.like(scheduler.stats, { running: 3, waiting: 5 });
  leave(first);
  leave(second);
  t.like(scheduler.stats, { running: 2, waiting: 4 }, 'as heavy ones');
  // Another account is served at once, and from then on one of the slow account's jobs runs at a time.
  const other = await ask('other');
  t.like(scheduler.stats, { running: 3, waiting: 4 });
  clock.at += 12_000;
  for (const job of all.slice(0, 2)) leave(await job);
  t.like(scheduler.stats, { running: 2, waiting: 3 });
  leave(other);
  t.like(scheduler.stats, { running: 1, waiting: 3 });
  // Until the other one has not been seen for a while.
  clock.at += 6000;
  leave((await all[2]) ?? t.fail());
  t.like(scheduler.stats, { running: 2, waiting: 1 });
});

test('jobs that were cancelled early do not hide that those of an account take long', async (t) => {
  const { scheduler, clock } = open({ running: 3 });
  const ask = () => scheduler.acquire(work({ account: 'slow', ms: 300 }), forever());
  await scheduler.acquire(work({ account: 'other' }), forever());
  const long = [await ask(), await ask()];
  clock.at += 3000;
  for (const job of long) leave(job);
  for (let i = 0; i < 20; i++) {
    const outcome = await ask();
    if (outcome.outcome === 'admitted') outcome.release(false);
  }
  for (let i = 0; i < 3; i++) void ask();
  t.like(scheduler.stats, { running: 2, waiting: 2 });
});

test('what a job waited for others is not charged to its account', async (t) => {
  const order = async (took: number, waited: number) => {
    const { scheduler, clock } = open();
    const names: string[] = [];
    const first = await scheduler.acquire(work({ account: 'first', ms: 1 }), forever());
    const ask = async (account: string, ms: number, waits: number) => {
      const outcome = await scheduler.acquire(work({ account }), forever());
      names.push(account);
      clock.at += ms;
      if (outcome.outcome === 'admitted') outcome.release(true, waits);
    };
    const all = [0, 1].flatMap(() => [ask('a', took, waited), ask('b', 1000, 0)]);
    all.push(ask('a', took, waited));
    leave(first);
    await Promise.all(all);
    return names.join('');
  };
  t.is(await order(1000, 0), 'ababa');
  t.is(await order(4000, 3000), 'ababa');
  t.is(await order(4000, 0), 'abbaa');
});
