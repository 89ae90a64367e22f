import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { InMemoryRateLimit } from '../../src/limits/inMemoryRate.ts';
import { RedisRateLimit } from '../../src/limits/redisRate.ts';
import { standardRate, testRateContract } from '../contract/rate.ts';
import { leaveOut } from '../fixtures/leftOut.ts';
import { noRedis, ownDatabase, redisIsHere, removeSharedRedis } from '../fixtures/redis.ts';
import { TestClock } from '../support/stores.ts';

testRateContract(test, 'memory', async (_, options) => {
  const clock = new TestClock();
  const rate = new InMemoryRateLimit(options, clock);
  const forward = async (ms: number) => clock.forward(ms);
  return { here: rate, there: rate, forward, now: async () => clock.at };
});

if (redisIsHere) {
  testRateContract(test, 'redis', async (t, options) => {
    const server = await ownDatabase();
    const [one, two] = await Promise.all([server.open(t), server.open(t)]);
    return {
      here: new RedisRateLimit(one, options),
      there: new RedisRateLimit(two, options),
      forward: (ms) => sleep(ms + 20),
      now: async () => {
        const [seconds, micros] = (await one.commands.send(['TIME'])) as [string, string];
        return Number(seconds) * 1000 + Number(micros) / 1000;
      },
    };
  });

  for (const [jump, ms] of [
    ['an hour back', 3_600_000],
    ['a moment back', 700],
  ] as const)
    test(`redis: its clock is set ${jump}: no window exceeds its length, and failed calls are returned`, async (t) => {
      const server = await ownDatabase();
      const rate = new RedisRateLimit(await server.open(t), standardRate);
      const failed = await rate.take('a', 10e6);
      await rate.take('a', 20e6);
      // What such a clock leaves behind: a start and an expiry in the future.
      const start = Number(await server.ask('HGET', 'cutout:rate:a', 'start')) + ms;
      await server.ask('HSET', 'cutout:rate:a', 'start', String(start));
      await server.ask('PEXPIREAT', 'cutout:rate:a', String(start + 60_000));
      const state = await rate.state('a');
      t.is(state.remaining, 470);
      t.true(state.retryAfter <= 60, String(state.retryAfter));
      t.true(Number(await server.ask('PTTL', 'cutout:rate:a')) <= 60_000);
      if (failed.outcome === 'taken') await failed.ticket.release();
      t.is((await rate.state('a')).remaining, 480);
    });

  test.after.always(removeSharedRedis);
} else leaveOut('everything with Redis', noRedis);

const recorded = () => {
  // First call 15:48:27, reset 15:49:27.
  const clock = new TestClock('2020-06-01T15:48:27Z');
  return { clock, rate: new InMemoryRateLimit(standardRate, clock) };
};
const unix = (text: string) => Date.parse(text) / 1000;

test('rate headers count down as in the recorded window, and begin anew after its reset', async (t) => {
  const { clock, rate } = recorded();
  const reset = unix('2020-06-01T15:49:27Z');
  for (let call = 1; call <= 6; call++) {
    await rate.take('a', 166_500);
    t.deepEqual(await rate.state('a'), { limit: 500, remaining: 500 - call, reset, retryAfter: 61 - call });
    clock.forward(1000);
  }
  clock.set('2020-06-01T15:49:26.999Z');
  t.is((await rate.state('a')).remaining, 494);
  clock.set('2020-06-01T15:49:27Z');
  t.is((await rate.state('a')).remaining, 500);
  await rate.take('a', 1);
  t.is((await rate.state('a')).reset, reset + 60);
});

for (const [jump, ms] of [
  ['back', -3_600_000],
  ['forward', 3_600_000],
] as const) {
  test(`the clock is set an hour ${jump}: the window ends when its minute is over, and the reported time follows the clock`, async (t) => {
    let [now, elapsed] = [unix('2020-06-01T15:48:27Z') * 1000, 5000];
    const rate = new InMemoryRateLimit(
      { limit: 10, windowSeconds: 60 },
      { now: () => now, elapsed: () => elapsed },
    );
    const pass = (passed: number) => {
      now += passed;
      elapsed += passed;
    };
    await rate.take('a', 10e6);
    pass(20_000);
    now += ms;
    const reset = Math.ceil(now / 1000) + 40;
    t.deepEqual(await rate.usedUpState('a'), { limit: 10, remaining: 0, reset, retryAfter: 40 });
    pass(39_999);
    t.deepEqual(await rate.usedUpState('a'), { limit: 10, remaining: 0, reset, retryAfter: 1 });
    pass(1);
    t.is(await rate.usedUpState('a'), undefined);
    t.is((await rate.take('a', 10e6)).outcome, 'taken');
    t.is((await rate.state('a')).reset, reset + 60);
  });
}

test('clocks that drift apart a little do not change the reported values', async (t) => {
  let [now, elapsed] = [unix('2020-06-01T15:48:27Z') * 1000 + 990, 0];
  const rate = new InMemoryRateLimit(standardRate, { now: () => now, elapsed: () => elapsed });
  await rate.take('a', 1);
  const { reset } = await rate.state('a');
  for (const [wall, own] of [
    [10_030, 10_000],
    [10_000, 10_030],
    [10_080, 10_000],
  ] as const) {
    now += wall;
    elapsed += own;
    t.is((await rate.state('a')).reset, reset);
  }
});

test('no current window is forgotten, however many accounts have one', async (t) => {
  const rate = new InMemoryRateLimit({ limit: 1, windowSeconds: 60 }, { now: () => 0, elapsed: () => 0 });
  for (let i = 0; i <= 10_000; i++) await rate.take(String(i), 1);
  t.is((await rate.take('0', 1)).outcome, 'refused');
});

test('Retry-After is at least 1, and a client that waits for the reset is served', async (t) => {
  const clock = new TestClock('2020-06-01T15:48:27Z');
  const rate = new InMemoryRateLimit({ limit: 1, windowSeconds: 60 }, clock);
  clock.forward(300);
  await rate.take('a', 1);
  clock.forward(59_900);
  const state = await rate.usedUpState('a');
  t.is(state?.retryAfter, 1);
  clock.at = (state?.reset ?? 0) * 1000;
  t.is((await rate.take('a', 1)).outcome, 'taken');
});
