import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { AppError } from '../../src/errors.ts';
import type { Context } from '../../src/http/context.ts';
import { tokenGuard } from '../../src/http/middleware/auth.ts';
import { Attempts, attemptSourceOf, mostSources } from '../../src/limits/attempts.ts';
import { systemClock } from '../../src/limits/clock.ts';
import { InMemoryRateLimit } from '../../src/limits/inMemoryRate.ts';
import type { RateOptions } from '../../src/limits/rate.ts';
import { RedisRateLimit } from '../../src/limits/redisRate.ts';
import type { Redis } from '../../src/store/redis.ts';
import { leaveOut } from '../fixtures/leftOut.ts';
import { noRedis, ownDatabase, RedisServer, redisIsHere, removeSharedRedis } from '../fixtures/redis.ts';

interface Setting {
  readonly here: Attempts;
  /** As another node sees it. */
  readonly there: Attempts;
  readonly forward: (ms: number) => Promise<void>;
}

const shared = (redis: Redis, rules: RateOptions) =>
  new Attempts(new InMemoryRateLimit(rules, systemClock), new RedisRateLimit(redis, rules, 'failures'));

function contract(name: string, make: (t: ExecutionContext, rules: RateOptions) => Promise<Setting>): void {
  test(`${name}: after the allowed failures the source waits for the end of its window`, async (t) => {
    const { here, there, forward } = await make(t, { limit: 3, windowSeconds: 2 });
    for (let i = 0; i < 3; i++) {
      t.is(await there.wait('a'), 0);
      await here.failed('a');
    }
    for (const node of [here, there]) {
      const wait = await node.wait('a');
      t.true(wait === 2 || wait === 1, String(wait));
      t.is(await node.wait('b'), 0);
    }
    await forward(2000);
    t.is(await here.wait('a'), 0);
    await there.failed('a');
    t.is(await here.wait('a'), 0, 'a new window');
  });

  test(`${name}: of concurrent attempts no more are answered than may fail, whether the last is right or wrong`, async (t) => {
    const { here, there } = await make(t, { limit: 5, windowSeconds: 60 });
    const guards = [here, there].map((attempts) => tokenGuard('secret', 'operator', attempts));
    const ask = async (node: number, token: string): Promise<number> => {
      const ctx = { ip: '192.0.2.1', get: () => `Bearer ${token}` } as unknown as Context;
      try {
        await guards[node]?.(ctx, async () => {});
        return 200;
      } catch (error) {
        return error instanceof AppError ? error.status : 0;
      }
    };
    const guesses = Array.from({ length: 100 }, (_, i) => ask(i % 2, `guess${i}`));
    const last = ask(1, 'secret');
    const answers = await Promise.all(guesses);
    t.is(answers.filter((status) => status === 403).length, 5);
    t.is(answers.filter((status) => status === 429).length, 95);
    if (here === there) t.is(await last, 429, 'the same answer as to a wrong one');
    t.is(await ask(0, 'secret'), 429);
  });

  test(`${name}: concurrent right attempts are not slowed down`, async (t) => {
    const { here, there } = await make(t, { limit: 2, windowSeconds: 60 });
    await here.failed('d');
    const waits = Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? here : there).wait('d'));
    t.deepEqual(new Set(await Promise.all(waits)), new Set([0]));
  });

  test(`${name}: 0 is no limit`, async (t) => {
    const { here } = await make(t, { limit: 0, windowSeconds: 60 });
    for (let i = 0; i < 100; i++) await here.failed('c');
    t.is(await here.wait('c'), 0);
  });
}

contract('memory', async (_, rules) => {
  let now = 0;
  const attempts = new Attempts(new InMemoryRateLimit(rules, { now: () => now, elapsed: () => now }));
  const forward = async (ms: number) => {
    now += ms;
  };
  return { here: attempts, there: attempts, forward };
});

if (redisIsHere) {
  contract('redis', async (t, rules) => {
    const server = await ownDatabase();
    return {
      here: shared(await server.open(t), rules),
      there: shared(await server.open(t), rules),
      forward: (ms) => sleep(ms + 20),
    };
  });

  test('redis: without it each node counts for itself; addresses are not stored', async (t) => {
    const server = await RedisServer.start();
    t.teardown(() => server.remove());
    const redis = await server.open(t);
    const attempts = shared(redis, { limit: 2, windowSeconds: 60 });
    await attempts.failed('192.0.2.7');
    t.false((await server.dump()).includes('192.0.2.7'));
    await server.kill();
    t.is(await attempts.wait('192.0.2.7'), 0);
    await attempts.failed('192.0.2.7');
    t.true((await attempts.wait('192.0.2.7')) > 50);
    t.is(await attempts.wait('192.0.2.8'), 0);
  });

  test('redis: its clock is set back an hour: no source waits longer than a window', async (t) => {
    const server = await ownDatabase();
    const attempts = shared(await server.open(t), { limit: 1, windowSeconds: 60 });
    const other = shared(await server.open(t), { limit: 1, windowSeconds: 60 });
    await other.failed('192.0.2.9');
    const [key = ''] = (await server.ask('KEYS', 'cutout:failures:*')) as string[];
    // What such a clock leaves behind: a start and an expiry in the future.
    const start = Number(await server.ask('HGET', key, 'start')) + 3_600_000;
    await server.ask('HSET', key, 'start', String(start));
    await server.ask('PEXPIREAT', key, String(start + 60_000));
    const wait = await attempts.wait('192.0.2.9');
    t.true(wait > 0 && wait <= 60, String(wait));
    t.true(Number(await server.ask('PTTL', key)) <= 60_000);
  });

  test.after.always(removeSharedRedis);
} else leaveOut('everything with Redis', noRedis);

test('memory: the oldest source is forgotten first', async (t) => {
  const attempts = new Attempts(
    new InMemoryRateLimit({ limit: 1, windowSeconds: 60 }, { now: () => 0, elapsed: () => 0 }, mostSources),
  );
  for (let i = 0; i <= 10_000; i++) await attempts.failed(String(i));
  t.is(await attempts.wait('0'), 0);
  t.is(await attempts.wait('1'), 60);
  t.is(await attempts.wait('10000'), 60);
});

test('a source is an IPv4 address, or the /64 network of an IPv6 address', (t) => {
  t.is(attemptSourceOf('192.0.2.7'), '192.0.2.7');
  t.is(attemptSourceOf('::ffff:192.0.2.7'), '192.0.2.7');
  t.is(attemptSourceOf('::ffff:c000:207'), '192.0.2.7');
  t.is(attemptSourceOf('unknown'), 'unknown');
  t.is(attemptSourceOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  t.is(attemptSourceOf('2001:0db8:0001:0002::9'), '2001:db8:1:2::/64');
  t.is(attemptSourceOf('2001:db8::1'), '2001:db8:0:0::/64');
  t.is(attemptSourceOf('fe80::1%eth0'), 'fe80:0:0:0::/64');
  t.is(attemptSourceOf('192.0.2.7:51234'), '192.0.2.7', 'with the port that some proxies add');
  t.is(attemptSourceOf('[2001:db8:1:2::9]:443'), '2001:db8:1:2::/64');
});
