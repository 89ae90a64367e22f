import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { MemoryRateLimit } from '../../src/limits/memoryRate.ts';
import { standardRate } from '../../src/limits/rate.ts';
import { RedisRateLimit } from '../../src/limits/redisRate.ts';
import { testRateContract } from '../contract/rate.ts';
import { leaveOut } from '../fixtures/left_out.ts';
import { noRedis, ownDatabase, redisIsHere, removeSharedRedis } from '../fixtures/redis.ts';
import { TestClock } from '../support/books.ts';

testRateContract(test, 'memory', async (_, options) => {
  const clock = new TestClock();
  const rate = new MemoryRateLimit(options, clock.now);
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
  test.after.always(removeSharedRedis);
} else leaveOut('everything with Redis', noRedis);

const recorded = () => {
  // First call 15:48:27, reset 15:49:27.
  const clock = new TestClock('2020-06-01T15:48:27Z');
  return { clock, rate: new MemoryRateLimit(standardRate, clock.now) };
};
const unix = (text: string) => Date.parse(text) / 1000;

test('the window of the recorded account', async (t) => {
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

test('Retry-After is at least 1, and a client that waits for the reset is served', async (t) => {
  const clock = new TestClock('2020-06-01T15:48:27Z');
  const rate = new MemoryRateLimit({ megapixels: 1, windowSeconds: 60 }, clock.now);
  clock.forward(300);
  await rate.take('a', 1);
  clock.forward(59_900);
  const state = await rate.usedUp('a');
  t.is(state?.retryAfter, 1);
  clock.at = (state?.reset ?? 0) * 1000;
  t.is((await rate.take('a', 1)).outcome, 'taken');
});
