import type { ExecutionContext, TestFn } from 'ava';
import fc from 'fast-check';
import type { RateLimit, RateOptions, RateOutcome, RateTicket } from '../../src/limits/rate.ts';
import { random } from '../fixtures/random.ts';

/** A rate limit as two nodes see it. */
export interface Rates {
  readonly here: RateLimit;
  readonly there: RateLimit;
  /** Advances the time by that many milliseconds. */
  readonly forward: (ms: number) => Promise<void>;
  /** Unix milliseconds of the limit's clock. */
  readonly now: () => Promise<number>;
}

function taken(outcome: RateOutcome): RateTicket {
  if (outcome.outcome !== 'taken') throw new Error('refused');
  return outcome.ticket;
}

/** Megapixels and window of the default settings. */
export const standardRate: RateOptions = { limit: 500, windowSeconds: 60 };
/** Short enough to be waited for. */
const short: RateOptions = { limit: 500, windowSeconds: 2 };

/** Behaviour of every rate limit. Registers its tests with `test`. */
export function testRateContract(
  test: TestFn,
  name: string,
  make: (t: ExecutionContext, options: RateOptions) => Promise<Rates>,
): void {
  const is = (title: string) => `${name}: ${title}`;

  test(is('the window starts with its first call and keeps its end'), async (t) => {
    const { here, there, forward, now } = await make(t, short);
    const before = await now();
    taken(await here.take('a', 166_500));
    const after = await now();
    const { reset } = await here.state('a');
    t.true(reset >= Math.ceil(before / 1000) + 2 && reset <= Math.ceil(after / 1000) + 2);
    await forward(300);
    taken(await there.take('a', 166_500));
    t.deepEqual([(await there.state('a')).remaining, (await here.state('a')).reset], [498, reset]);
    await forward(2000);
    t.is((await here.state('a')).remaining, 500);
    taken(await here.take('a', 1));
    const again = await there.state('a');
    t.is(again.remaining, 499);
    t.true(again.reset >= reset + 2);
  });

  for (const [pixels, calls] of [
    [1_000_001, 250],
    [10_000_000, 50],
    [50_000_000, 10],
  ] as const) {
    test(is(`${pixels} pixels: ${calls} calls in a window, on both nodes together`), async (t) => {
      const { here, there } = await make(t, standardRate);
      for (let i = 0; i < calls; i++) t.is((await (i % 2 ? here : there).take('a', pixels)).outcome, 'taken');
      t.is((await here.take('a', pixels)).outcome, 'refused');
      t.is((await there.take('a', pixels)).outcome, 'refused');
      t.is((await here.take('b', pixels)).outcome, 'taken');
    });
  }

  test(is('of 200 calls at once on both nodes exactly those that fit are taken'), async (t) => {
    const { here, there } = await make(t, standardRate);
    const asked = await Promise.all(
      Array.from({ length: 200 }, (_, i) => (i % 2 ? here : there).take('a', 10e6)),
    );
    t.is(asked.filter(({ outcome }) => outcome === 'taken').length, 50);
    t.is((await here.usedUpState('a'))?.remaining, 0);
  });

  test(is('a refused call consumes nothing and opens no window; a smaller one still fits'), async (t) => {
    const { here, there } = await make(t, standardRate);
    for (let i = 0; i < 49; i++) await here.take('a', 10e6);
    const refused = await there.take('a', 11e6);
    if (refused.outcome !== 'refused') return t.fail();
    t.deepEqual([refused.state.limit, refused.state.remaining], [500, 10]);
    t.true(refused.state.retryAfter >= 50 && refused.state.retryAfter <= 60);
    t.is(await here.usedUpState('a'), undefined);
    taken(await here.take('a', 10e6));
    const full = await there.usedUpState('a');
    t.is(full?.remaining, 0);
    t.is(full?.reset, (await here.state('a')).reset);
  });

  test(is('a failed call counts nothing, and opens no window'), async (t) => {
    const { here, there, forward } = await make(t, short);
    const failed = taken(await here.take('a', 20e6));
    const { reset } = await there.state('a');
    await failed.release();
    await failed.release();
    t.is((await there.state('a')).remaining, 500);
    await forward(1100);
    taken(await there.take('a', 1));
    t.true((await there.state('a')).reset > reset, 'a window of its own');
  });

  test(is('a failed call between two others leaves their window as it is'), async (t) => {
    const { here, there, forward } = await make(t, short);
    await here.take('a', 1e6);
    const { reset } = await here.state('a');
    const failed = taken(await there.take('a', 20e6));
    await forward(200);
    await here.take('a', 1e6);
    await failed.release();
    const state = await there.state('a');
    t.deepEqual([state.remaining, state.reset], [498, reset]);
  });

  test(is('a call that fails in the next window gives nothing back there'), async (t) => {
    const { here, there, forward } = await make(t, short);
    const old = taken(await here.take('a', 50e6));
    await forward(2010);
    await there.take('a', 3e6);
    await old.release();
    t.is((await here.state('a')).remaining, 497);
  });

  test(is('an image beyond a small limit takes a fresh window whole'), async (t) => {
    const { here, there } = await make(t, { limit: 10, windowSeconds: 60 });
    taken(await here.take('a', 25e6));
    t.is((await there.state('a')).remaining, 0);
    t.is((await there.take('a', 1)).outcome, 'refused');
  });

  test(is('without a limit nothing is refused and the headers still have numbers'), async (t) => {
    const { here } = await make(t, { limit: 0, windowSeconds: 60 });
    for (let i = 0; i < 1000; i++) t.is((await here.take('a', 50e6)).outcome, 'taken');
    t.is(await here.usedUpState('a'), undefined);
    const state = await here.state('a');
    t.deepEqual([state.limit, state.remaining, state.retryAfter], [1_000_000, 1_000_000, 60]);
    t.false(here.limited);
  });

  test(is('usage is the sum of what was taken and not returned, never more than the limit'), async (t) => {
    const { here, there } = await make(t, standardRate);
    const step = fc.oneof(
      fc.record({ take: fc.integer({ min: 1, max: 60_000_000 }) }),
      fc.record({ release: fc.nat() }),
    );
    let account = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.nat(), async (steps, seed) => {
        const next = random(seed);
        const node = () => (next() < 0.5 ? here : there);
        const id = `random ${account++}`;
        const open: { ticket: RateTicket; cost: number }[] = [];
        for (const one of steps) {
          if ('take' in one) {
            const before = (await node().state(id)).remaining;
            const outcome = await node().take(id, one.take);
            const cost = Math.max(1, Math.ceil(one.take / 1e6));
            t.is(outcome.outcome, cost <= before ? 'taken' : 'refused');
            if (outcome.outcome === 'taken') open.push({ ticket: outcome.ticket, cost });
          } else if (open.length > 0) {
            await open.splice(one.release % open.length, 1)[0]?.ticket.release();
          }
          const used = open.reduce((sum, { cost }) => sum + cost, 0);
          t.is((await node().state(id)).remaining, 500 - used);
        }
      }),
      { numRuns: 40 },
    );
  });
}
