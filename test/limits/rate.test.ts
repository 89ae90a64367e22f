import test from 'ava';
import fc from 'fast-check';
import { RateLimit, type RateOutcome, type RateTicket, standardRate } from '../../src/limits/rate.ts';
import { TestClock } from '../support/books.ts';

function make(options = standardRate) {
  // The recorded window: first call 15:48:27, reset 15:49:27.
  const clock = new TestClock('2020-06-01T15:48:27Z');
  return { clock, rate: new RateLimit(options, clock.now) };
}

function taken(outcome: RateOutcome): RateTicket {
  if (outcome.outcome !== 'taken') throw new Error('refused');
  return outcome.ticket;
}

const unix = (text: string) => Date.parse(text) / 1000;

test('the window starts with its first call and keeps its end, as recorded', (t) => {
  const { clock, rate } = make();
  const reset = unix('2020-06-01T15:49:27Z');
  for (let call = 1; call <= 6; call++) {
    t.deepEqual(taken(rate.take('a', 166_500)).state(), {
      limit: 500,
      remaining: 500 - call,
      reset,
      retryAfter: 61 - call,
    });
    clock.forward(1000);
  }
  clock.set('2020-06-01T15:49:26.999Z');
  t.is(rate.state('a').remaining, 494);
  clock.set('2020-06-01T15:49:27Z');
  t.is(rate.state('a').remaining, 500);
  t.is(taken(rate.take('a', 1)).state().reset, reset + 60);
});

for (const [pixels, calls] of [
  [1, 500],
  [1_000_000, 500],
  [1_000_001, 250],
  [4_000_000, 125],
  [10_000_000, 50],
  [25_000_000, 20],
  [50_000_000, 10],
] as const) {
  test(`${pixels} pixels: ${calls} calls a minute`, (t) => {
    const { rate } = make();
    for (let i = 0; i < calls; i++) t.is(rate.take('a', pixels).outcome, 'taken');
    t.is(rate.take('a', pixels).outcome, 'refused');
    t.is(rate.take('b', pixels).outcome, 'taken');
  });
}

test('a refused call consumes nothing; a smaller one still fits', (t) => {
  const { clock, rate } = make();
  for (let i = 0; i < 49; i++) rate.take('a', 10e6);
  clock.forward(30_500);
  const refused = rate.take('a', 11e6);
  t.deepEqual(refused, {
    outcome: 'refused',
    state: { limit: 500, remaining: 10, reset: unix('2020-06-01T15:49:27Z'), retryAfter: 30 },
  });
  t.is(rate.usedUp('a'), undefined);
  t.is(taken(rate.take('a', 10e6)).state().remaining, 0);
  t.is(rate.usedUp('a')?.retryAfter, 30);
});

test('a failed call counts nothing, and opens no window', (t) => {
  const { clock, rate } = make();
  const failed = taken(rate.take('a', 20e6));
  failed.giveBack();
  failed.giveBack();
  t.is(rate.state('a').remaining, 500);
  clock.forward(20_000);
  t.is(taken(rate.take('a', 1)).state().reset, unix('2020-06-01T15:49:47Z'));
});

test('a failed call between two others leaves their window as it is', (t) => {
  const { clock, rate } = make();
  rate.take('a', 1e6);
  const failed = taken(rate.take('a', 20e6));
  clock.forward(5000);
  rate.take('a', 1e6);
  failed.giveBack();
  t.deepEqual(rate.state('a'), {
    limit: 500,
    remaining: 498,
    reset: unix('2020-06-01T15:49:27Z'),
    retryAfter: 55,
  });
});

test('a call that fails in the next window gives nothing back there', (t) => {
  const { clock, rate } = make();
  const old = taken(rate.take('a', 50e6));
  clock.forward(60_000);
  rate.take('a', 3e6);
  old.giveBack();
  t.is(rate.state('a').remaining, 497);
});

test('Retry-After is at least 1, and a client that waits for the reset is served', (t) => {
  const { clock, rate } = make({ megapixels: 1, windowSeconds: 60 });
  clock.forward(300);
  rate.take('a', 1);
  clock.forward(59_900);
  const state = rate.usedUp('a');
  t.is(state?.retryAfter, 1);
  clock.at = (state?.reset ?? 0) * 1000;
  t.is(rate.take('a', 1).outcome, 'taken');
});

test('a picture beyond a small limit takes a fresh window whole', (t) => {
  const { rate } = make({ megapixels: 10, windowSeconds: 60 });
  t.is(taken(rate.take('a', 25e6)).state().remaining, 0);
  t.is(rate.take('a', 1).outcome, 'refused');
});

test('without a limit nothing is refused and the headers still have numbers', (t) => {
  const { rate } = make({ megapixels: 0, windowSeconds: 60 });
  for (let i = 0; i < 1000; i++) t.is(rate.take('a', 50e6).outcome, 'taken');
  t.is(rate.usedUp('a'), undefined);
  t.deepEqual(rate.state('a'), {
    limit: 1_000_000,
    remaining: 1_000_000,
    reset: unix('2020-06-01T15:49:27Z'),
    retryAfter: 60,
  });
});

test('what is used is the sum of what was taken and not given back, never more than the limit', (t) => {
  const step = fc.oneof(
    fc.record({ take: fc.integer({ min: 1, max: 60_000_000 }) }),
    fc.record({ giveBack: fc.nat() }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const { rate } = make();
      const open: { ticket: RateTicket; cost: number }[] = [];
      for (const one of steps) {
        if ('take' in one) {
          const before = rate.state('a').remaining;
          const outcome = rate.take('a', one.take);
          const cost = Math.max(1, Math.ceil(one.take / 1e6));
          t.is(outcome.outcome, cost <= before ? 'taken' : 'refused');
          if (outcome.outcome === 'taken') open.push({ ticket: outcome.ticket, cost });
        } else if (open.length > 0) {
          open.splice(one.giveBack % open.length, 1)[0]?.ticket.giveBack();
        }
        t.is(rate.state('a').remaining, 500 - open.reduce((sum, { cost }) => sum + cost, 0));
      }
    }),
    { numRuns: 100 },
  );
});
