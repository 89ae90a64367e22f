import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { UserError } from '../../src/errors.ts';
import { isFull, Redis, script } from '../../src/store/redis.ts';
import { eventually } from '../fixtures/eventually.ts';
import { leaveOut } from '../fixtures/leftOut.ts';
import { noRedis, RedisServer, redisIsHere } from '../fixtures/redis.ts';

const nothing = () => {};

if (redisIsHere) {
  test('a password is accepted; a wrong one is reported without it', async (t) => {
    const server = await RedisServer.start([], 'the-right-word');
    t.teardown(() => server.remove());
    const redis = await server.open(t);
    t.is(await redis.commands.send(['PING']), 'PONG');
    const url = server.url.replace('the-right-word', 'the-wrong-word');
    const error = await t.throwsAsync(Redis.open({ url, onChange: nothing }, nothing), {
      instanceOf: UserError,
    });
    t.regex(
      error?.message ?? '',
      /^CUTOUT_REDIS_URL names a Redis at 127\.0\.0\.1:\d+ that cannot be used: WRONGPASS/,
    );
    t.false(JSON.stringify([error, error?.message, error?.stack]).includes('wrong-word'));
    const none = url.replace(':the-wrong-word@', '');
    await t.throwsAsync(Redis.open({ url: none, onChange: nothing }, nothing), { message: /NOAUTH/ });
  });

  test('a Redis that evicts keys when full causes a warning', async (t) => {
    const server = await RedisServer.start(['--maxmemory-policy', 'allkeys-lru']);
    t.teardown(() => server.remove());
    const warnings: string[] = [];
    const redis = await Redis.open({ url: server.url, onChange: nothing }, (text) => warnings.push(text));
    redis.close();
    t.is(warnings.length, 1);
    t.regex(warnings[0] ?? '', /allkeys-lru.*noeviction/);
  });

  test('a loss is reported once with its reason and without the password, and so is the return', async (t) => {
    const server = await RedisServer.start([], 'a-secret-word');
    t.teardown(() => server.remove());
    const changes: (Error | undefined)[] = [];
    const redis = await server.open(t, (lost) => changes.push(lost));
    const ping = () => redis.commands.send(['PING']).catch((error: unknown) => error);
    await server.kill();
    for (let i = 0; i < 20; i++) {
      const before = performance.now();
      t.like(await ping(), { code: 'STORE_UNAVAILABLE' });
      t.true(performance.now() - before < 10_000);
      await sleep(20);
    }
    t.is(changes.length, 1);
    await server.start();
    for (const until = performance.now() + 10_000; (await ping()) !== 'PONG'; await sleep(20))
      if (performance.now() > until) return t.fail('it does not come back');
    await eventually(() => redis.isReachable);
    // On a machine in heavy use an answer may take so long that it counts as another loss.
    for (const [i, lost] of changes.entries()) t.is(lost instanceof Error, i % 2 === 0, `${lost}`);
    t.is(changes.length % 2, 0);
    t.false(String(changes[0]?.stack).includes('a-secret-word'));
  });

  test('after a failover behind one address, the connections move to the new primary by themselves', async (t) => {
    const former = await RedisServer.start();
    const primary = await RedisServer.start();
    t.teardown(() => Promise.all([former.remove(), primary.remove()]).then(nothing));
    let target = former;
    const address = createServer((inner) => {
      const outer = connect(Number(new URL(target.url).port), '127.0.0.1');
      inner.pipe(outer).pipe(inner);
      for (const [one, other] of [
        [inner, outer],
        [outer, inner],
      ] as const)
        one.on('error', nothing).on('close', () => other.destroy());
    }).listen(0, '127.0.0.1');
    await once(address, 'listening');
    t.teardown(() => void address.close());
    const url = `redis://127.0.0.1:${(address.address() as AddressInfo).port}`;
    const changes: (Error | undefined)[] = [];
    const redis = await Redis.open({ url, onChange: (lost) => changes.push(lost) }, nothing);
    t.teardown(() => redis.close());
    t.true(redis.isReachable);

    await former.ask('REPLICAOF', '127.0.0.1', new URL(primary.url).port);
    target = primary;
    await eventually(() => !redis.isReachable);
    t.regex(String(changes[0]), /READONLY/);
    await eventually(() => redis.isReachable);
    for (const link of [redis.commands, redis.values])
      await eventually(async () => (await link.send(['SET', 'k', 'v']).catch(nothing)) === 'OK');
    t.is(changes.length, 2);
  });

  test('a small script runs when Redis is full; other commands fail with that reason', async (t) => {
    const server = await RedisServer.start(['--maxmemory-policy', 'noeviction']);
    t.teardown(() => server.remove());
    const { commands } = await server.open(t);
    await server.ask('CONFIG', 'SET', 'maxmemory', '1');
    const lua = "return redis.call('SET', KEYS[1], ARGV[1]).ok";
    t.is(await commands.run(script(lua), ['k'], ['v']), 'OK');
    const refused = await t.throwsAsync(commands.run(script(lua, 'large'), ['k'], ['v']));
    t.true(isFull(refused));
    t.true(isFull(await t.throwsAsync(commands.send(['SET', 'k', 'v']))));
  });

  test('a script that Redis has lost is sent again; an invalid one is an internal error', async (t) => {
    const server = await RedisServer.start();
    t.teardown(() => server.remove());
    const { commands } = await server.open(t);
    const one = script('return ARGV[1]');
    t.is(await commands.run(one, [], ['x']), 'x');
    await server.ask('SCRIPT', 'FLUSH');
    t.is(await commands.run(one, [], ['y']), 'y');
    const wrong = await t.throwsAsync<Error & { code?: string }>(
      commands.run(script('return nil +'), [], []),
    );
    t.is(wrong?.code, undefined);
  });

  test('after closing no command is sent', async (t) => {
    const server = await RedisServer.start();
    t.teardown(() => server.remove());
    const redis = await server.open(t);
    redis.close();
    await t.throwsAsync(redis.commands.send(['PING']), { code: 'STORE_UNAVAILABLE' });
  });
} else leaveOut('everything with Redis', noRedis);
