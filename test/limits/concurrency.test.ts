import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { type ConcurrencyLimit, InMemoryConcurrencyLimit } from '../../src/limits/concurrency.ts';
import { RedisConcurrencyLimit } from '../../src/limits/redisConcurrency.ts';
import { eventually } from '../fixtures/eventually.ts';
import { leaveOut } from '../fixtures/leftOut.ts';
import { noRedis, ownDatabase, redisIsHere, removeSharedRedis } from '../fixtures/redis.ts';

/** A limit as two nodes see it. */
type Make = (t: ExecutionContext, limit: number) => Promise<readonly [ConcurrencyLimit, ConcurrencyLimit]>;

function contract(name: string, make: Make): void {
  test(`${name}: the limit of an account counts all nodes; other accounts are independent`, async (t) => {
    const [here, there] = await make(t, 2);
    const [first, second] = [await here.enter('a'), await there.enter('a')];
    t.truthy(second);
    t.is(await here.enter('a'), undefined);
    t.is(await there.enter('a'), undefined);
    t.truthy(await there.enter('b'));
    await first?.();
    await first?.();
    t.truthy(await there.enter('a'));
    t.is(await here.enter('a'), undefined);
  });

  test(`${name}: of 100 concurrent calls no more than the limit enter`, async (t) => {
    const [here, there] = await make(t, 7);
    const asked = await Promise.all(Array.from({ length: 100 }, (_, i) => (i % 2 ? here : there).enter('c')));
    t.is(asked.filter((leave) => leave !== undefined).length, 7);
  });

  test(`${name}: 0 is no limit`, async (t) => {
    const [here] = await make(t, 0);
    for (let i = 0; i < 1000; i++) t.truthy(await here.enter('d'));
  });
}

contract('memory', async (_, limit) => {
  const one = new InMemoryConcurrencyLimit(limit);
  return [one, one];
});

if (redisIsHere) {
  contract('redis', async (t, limit) => {
    const server = await ownDatabase();
    return [
      new RedisConcurrencyLimit(await server.open(t), limit),
      new RedisConcurrencyLimit(await server.open(t), limit),
    ];
  });

  test('redis: calls of a dead node stop counting, those of a live one do not', async (t) => {
    const server = await ownDatabase();
    const [dies, lives, third] = [await server.open(t), await server.open(t), await server.open(t)];
    t.truthy(await new RedisConcurrencyLimit(dies, 2, 2000).enter('a'));
    t.truthy(await new RedisConcurrencyLimit(lives, 2, 2000).enter('a'));
    dies.close();
    const limit = new RedisConcurrencyLimit(third, 2, 2000);
    t.is(await limit.enter('a'), undefined);
    await sleep(2300);
    t.truthy(await limit.enter('a'), 'the place of the one that died');
    t.is(await limit.enter('a'), undefined, 'the other one is still at work');
  });

  test('redis: calls count again after Redis lost them', async (t) => {
    const server = await ownDatabase();
    const limit = new RedisConcurrencyLimit(await server.open(t), 1, 2000);
    t.truthy(await limit.enter('a'));
    await server.ask('FLUSHDB');
    await eventually(async () => (await server.dump()) !== '');
    t.is(await limit.enter('a'), undefined);
  });

  test("redis: its clock is set back: a dead node's call counts no longer than a lease", async (t) => {
    const server = await ownDatabase();
    const limit = new RedisConcurrencyLimit(await server.open(t), 1, 60_000);
    await server.ask('ZADD', 'cutout:calls:a', String(Date.now() + 3_660_000), 'of a node that died');
    t.is(await limit.enter('a'), undefined);
    const end = Number(await server.ask('ZSCORE', 'cutout:calls:a', 'of a node that died'));
    t.true(end <= Date.now() + 60_000, String(end));
  });

  test.after.always(removeSharedRedis);
} else leaveOut('everything with Redis', noRedis);
