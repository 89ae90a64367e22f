import test, { type ExecutionContext } from 'ava';
import { Keyv, KeyvBridgeAdapter } from 'keyv';
import { idleMs, type Session, Sessions } from '../../src/accounts/sessions.ts';
import { RedisKeyv } from '../../src/store/redisKeyv.ts';
import { noRedis, ownDatabase, RedisServer, redisIsHere, removeSharedRedis } from '../fixtures/redis.ts';
import { TestClock } from '../support/stores.ts';

const ada = { accountId: 'acc_ada' };

/** Stores of two nodes. */
type Make = (t: ExecutionContext) => Promise<readonly [Keyv<Session>, Keyv<Session>]>;

function contract(name: string, make: Make): void {
  const start = async (t: ExecutionContext) => {
    const clock = new TestClock(new Date().toISOString());
    const [here, there] = (await make(t)).map((store) => new Sessions(store, clock.now));
    if (!here || !there) throw new Error('two nodes');
    return { clock, here, there };
  };

  test(`${name}: nodes share sessions until one of them ends the session`, async (t) => {
    const { here, there } = await start(t);
    const { token, session } = await here.open({
      ...ada,
      provider: {
        id: '1',
        idToken: 'token',
        vouched: { issuer: 'https://a.test', email: null, claim: null },
      },
    });
    t.deepEqual(await there.find(token), session);
    t.is(await there.find(`${token}x`), undefined);
    await there.end(token);
    t.is(await here.find(token), undefined);
    t.is(await there.find(token), undefined);
  });

  test(`${name}: signing in ends the previous session`, async (t) => {
    const { here, there } = await start(t);
    const first = await here.open(ada);
    const second = await there.open(ada, first.token);
    t.is(await here.find(first.token), undefined);
    t.truthy(await here.find(second.token));
  });

  test(`${name}: a session ends when idle, and in any case after its maximum age`, async (t) => {
    const { clock, here, there } = await start(t);
    const { token } = await here.open(ada);
    clock.forward(idleMs - 1);
    t.is((await there.find(token))?.lastSeenAt, clock.at, 'written down again');
    clock.forward(idleMs - 1);
    t.truthy(await here.find(token));
    clock.forward(idleMs);
    t.is(await there.find(token), undefined);
  });

  test(`${name}: a session ends when the clock is set back, also if a correct clock has seen it since`, async (t) => {
    const { clock, here, there } = await start(t);
    const [opened, seen] = [await here.open(ada), await here.open(ada)];
    clock.forward(-50_000);
    t.truthy(await there.find(opened.token), 'as clocks of nodes differ');
    clock.forward(-20_000);
    t.is(await there.find(opened.token), undefined);
    clock.forward(70_000 + idleMs - 1);
    t.is((await there.find(seen.token))?.lastSeenAt, clock.at);
    clock.forward(-idleMs / 2);
    t.is(await here.find(seen.token), undefined, 'idle for longer than it seems');
  });
}

contract('memory', async () => {
  const store = new Keyv<Session>();
  return [store, store];
});

if (redisIsHere) {
  const keyv = async (t: ExecutionContext, place: Awaited<ReturnType<typeof ownDatabase>>) =>
    new Keyv<Session>({
      store: new KeyvBridgeAdapter(new RedisKeyv(await place.open(t), 'cutout:session:')),
    });
  contract('redis', async (t) => {
    const place = await ownDatabase();
    return [await keyv(t, place), await keyv(t, place)];
  });

  test('redis: reading the store opens no session; a node that clears it ends none', async (t) => {
    const place = await ownDatabase();
    const store = await keyv(t, place);
    const sessions = new Sessions(store, Date.now);
    const opened = [await sessions.open(ada), await sessions.open(ada)];
    const dump = await place.dump();
    for (const { token } of opened) t.false(dump.includes(token));
    await store.clear();
    for (const { token } of opened) t.truthy(await sessions.find(token));
  });

  test('redis: without it nobody counts as signed in or out; when full, it signs nobody out', async (t) => {
    const server = await RedisServer.start(['--maxmemory-policy', 'noeviction']);
    t.teardown(() => server.remove());
    const clock = new TestClock(new Date().toISOString());
    const sessions = new Sessions(await keyv(t, server), clock.now);
    const { token } = await sessions.open(ada);
    await server.ask('CONFIG', 'SET', 'maxmemory', '1');
    await t.throwsAsync(sessions.open(ada), { code: 'STORE_UNAVAILABLE' });
    clock.forward(120_000);
    t.truthy(await sessions.find(token), 'though that it was seen cannot be written');
    await server.kill();
    await t.throwsAsync(sessions.find(token), { code: 'STORE_UNAVAILABLE' });
    await t.throwsAsync(sessions.end(token), { code: 'STORE_UNAVAILABLE' });
  });
  test.after.always(removeSharedRedis);
} else console.log(noRedis);
