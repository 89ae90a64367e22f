import { createCipheriv, randomBytes } from 'node:crypto';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext, type TestFn } from 'ava';
import { type ContentIdentifier, createContentIdentifier, textHash } from '../../src/idempotency/hash.ts';
import { Idempotency } from '../../src/idempotency/idempotency.ts';
import { InMemoryResultStore } from '../../src/idempotency/inMemoryStore.ts';
import { RedisResultStore, type RedisStoreOptions } from '../../src/idempotency/redisStore.ts';
import { contentKey } from '../../src/idempotency/resultStore.ts';
import type { Redis } from '../../src/store/redis.ts';
import {
  callsOf,
  charged,
  contentOf,
  getOrMake,
  type Image,
  type KeepOptions,
  testIdempotencyContract,
} from '../contract/idempotency.ts';
import { eventually } from '../fixtures/eventually.ts';
import { leaveOut } from '../fixtures/leftOut.ts';
import { noRedis, ownDatabase, RedisServer, redisIsHere, removeSharedRedis } from '../fixtures/redis.ts';

const key = Buffer.alloc(32, 5);

const inMemoryStore = (t: ExecutionContext, options: KeepOptions = {}) =>
  new InMemoryResultStore<Image>({
    ttlSeconds: 600,
    maxBytes: 1e6,
    bytesOf: ({ bytes }) => bytes.length,
    contentKey: key,
    onError: (error) => t.fail(String(error)),
    ...options,
  });

testIdempotencyContract(test, 'memory', async (t, options) => {
  const results = new Idempotency(inMemoryStore(t, options));
  return [results, results];
});

test('memory: the repeat gets the very same result', async (t) => {
  const results = new Idempotency(inMemoryStore(t));
  const { call } = callsOf([results, results]);
  const first = await call();
  t.is((await call()).value, first.value);
});

test('memory: how an answer ends is of no account once another was sent and reported the charge', async (t) => {
  const results = new Idempotency(inMemoryStore(t));
  const { call } = callsOf([results, results]);
  const first = await call();
  const beside = await call();
  t.deepEqual([first.tracksDelivery, beside.tracksDelivery], [true, true], 'nothing was sent yet');
  await first.end('broken');
  const second = await call();
  t.deepEqual([second.replayed, second.tracksDelivery], [false, true], 'it reports the charge');
  await second.end('delivered');
  await beside.end('unsent');
  const third = await call();
  t.deepEqual([third.replayed, third.tracksDelivery], [true, false]);
  await third.end('unsent');
  t.false((await call()).tracksDelivery);
});

test.serial('memory: a wall clock that is set forward or back loses no result', async (t) => {
  const results = new Idempotency(inMemoryStore(t));
  const { call, runs } = callsOf([results, results]);
  await call({ idempotencyKey: 'k' });
  const { now } = Date;
  try {
    for (const days of [2, -2]) {
      Date.now = () => now() + days * 86_400_000;
      t.true((await call({ idempotencyKey: 'k' })).replayed, `${days} days`);
      t.true((await call()).replayed, `${days} days`);
    }
  } finally {
    Date.now = now;
  }
  t.is(runs(), 1);
});

test('without a store nothing is kept and nobody waits', async (t) => {
  const results = new Idempotency<Image>(undefined);
  const { call, runs } = callsOf([results, results]);
  const all = await Promise.all([call({ idempotencyKey: 'k' }), call({ idempotencyKey: 'k' })]);
  t.deepEqual(
    all.map(({ replayed }) => replayed),
    [false, false],
  );
  t.is(runs(), 2);
});

test('work hears what the ledger recognises its repeats by, where results are cached', async (t) => {
  const background = Buffer.from('background');
  const repeatIn = async (store: InMemoryResultStore<Image> | undefined) => {
    let heard: unknown;
    await getOrMake(
      new Idempotency<Image>(store),
      {},
      async () => ({ ...contentOf('image'), background, settings: 's' }),
      async ({ repeat }) => {
        heard = repeat;
        return charged({ bytes: Buffer.from('result') });
      },
    );
    return heard;
  };
  t.deepEqual(await repeatIn(inMemoryStore(t)), {
    content: (await createContentIdentifier(key)(Buffer.from('image'), 's', { background })).content,
    forMs: 600_000,
  });
  t.is(await repeatIn(undefined), undefined);
});

const nameOf = async (...of: Parameters<ContentIdentifier>): Promise<string> =>
  (await createContentIdentifier(key)(...of)).content;

if (redisIsHere) {
  const nodeOn = (
    redis: Redis,
    { ttlSeconds = 600, maxBytes = 1e6, ...more }: KeepOptions & Partial<RedisStoreOptions<Image>>,
  ) =>
    new Idempotency(
      new RedisResultStore<Image>(redis, {
        ttlSeconds,
        maxBytes,
        contentKey: key,
        pack: ({ bytes }) => ({ facts: {}, bytes }),
        unpack: async ({ bytes }) => charged({ bytes }),
        onError: () => {},
        ...more,
      }),
    );

  test.after.always(removeSharedRedis);

  testIdempotencyContract(test.serial as TestFn, 'redis', async (t, options) => {
    const server = await ownDatabase();
    const onError = (error: unknown) => t.fail(String(error));
    const node = async () => nodeOn(await server.open(t), { ...options, onError });
    return [await node(), await node()];
  });

  const never = async () => {
    throw new Error('must not run');
  };

  test.serial(
    'redis: a result is unpacked by the name of its account and content, under whatever key',
    async (t) => {
      const server = await ownDatabase();
      const names: string[] = [];
      const unpack: RedisStoreOptions<Image>['unpack'] = async ({ bytes }, name) => {
        names.push(name);
        return charged({ bytes });
      };
      const node = async () => nodeOn(await server.open(t), { unpack });
      const { call, runs } = callsOf([await node(), await node()]);
      await call({ idempotencyKey: 'k' });
      await call({ idempotencyKey: 'k', node: 1 });
      await call({ node: 1 });
      t.is(runs(), 1);
      const name = textHash(contentKey('acc_1', await nameOf(Buffer.from('image'), '')));
      t.deepEqual(names, [name, name]);
    },
  );

  test.serial('redis: who waits takes over within seconds when the node that works dies', async (t) => {
    t.timeout(60_000);
    const server = await ownDatabase();
    const [dying, living] = [await server.open(t), await server.open(t)];
    const { call } = callsOf([nodeOn(dying, { leaseMs: 2000 }), nodeOn(living, { leaseMs: 2000 })]);
    let started = () => {};
    const working = new Promise<void>((resolve) => {
      started = resolve;
    });
    const hang = () => {
      started();
      return new Promise<Image>(() => {});
    };
    const before = performance.now();
    void call({ work: hang });
    await working;
    const waits = call({ node: 1 });
    // As if its process was gone: nothing renews its lease.
    dying.close();
    t.false((await waits).replayed);
    const seconds = (performance.now() - before) / 1000;
    t.true(seconds > 1 && seconds < 20, `${seconds} s`);
  });

  test.serial('redis: work that takes longer than its lease is still one run', async (t) => {
    t.timeout(60_000);
    const server = await ownDatabase();
    const node = async () => nodeOn(await server.open(t), { leaseMs: 2000 });
    const { call } = callsOf([await node(), await node()]);
    const slow = async () => {
      await sleep(3000);
      return { bytes: Buffer.from('slow') };
    };
    const first = call({ work: slow });
    await sleep(100);
    const second = await call({ work: never, node: 1 });
    t.is(second.value.bytes.toString(), 'slow');
    t.deepEqual([(await first).replayed, second.replayed].sort(), [false, true]);
  });

  test.serial('redis: work in flight during a flush succeeds, is cached and runs once', async (t) => {
    t.timeout(60_000);
    const server = await ownDatabase();
    const node = async () => nodeOn(await server.open(t), { leaseMs: 2000 });
    const { call } = callsOf([await node(), await node()]);
    let started = () => {};
    const working = new Promise<void>((resolve) => {
      started = resolve;
    });
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const slow = async () => {
      started();
      await finished;
      return { bytes: Buffer.from('slow') };
    };
    const first = call({ work: slow });
    await working;
    await server.ask('FLUSHDB');
    // The lock is there again after the next renewal.
    await eventually(async () => (await server.dump()) !== '');
    const waits = call({ work: never, node: 1 });
    await sleep(100);
    finish();
    const second = await waits;
    t.is(second.value.bytes.toString(), 'slow');
    t.true((await call({ work: never, node: 1 })).replayed);
    t.deepEqual([(await first).replayed, second.replayed].sort(), [false, true]);
  });

  test.serial(
    'redis: gone under way, the work ends well and tells of its charge once; others get STORE_UNAVAILABLE',
    async (t) => {
      const server = await RedisServer.start();
      t.teardown(() => server.remove());
      const errors: unknown[] = [];
      const redis = await server.open(t);
      const { call } = callsOf([
        nodeOn(redis, { onError: (error) => errors.push(error) }),
        nodeOn(await server.open(t), {}),
      ]);
      const work = async () => {
        // Until the other call has found the work, which it does once its image is hashed.
        await sleep(500);
        await server.kill();
        return { bytes: Buffer.from('result') };
      };
      const both = await Promise.all([call({ work }), call({ work })]);
      t.deepEqual(both.map(({ replayed }) => replayed).sort(), [false, true]);
      t.is(errors.length, 1);
      const before = performance.now();
      for (const node of [0, 1] as const)
        await t.throwsAsync(call({ node, work: never }), { code: 'STORE_UNAVAILABLE' });
      t.true(performance.now() - before < 10_000);
      await server.start();
      await t.notThrowsAsync(
        eventually(async () => (await call({ node: 1 }).catch(() => undefined)) !== undefined),
      );
    },
  );

  test.serial(
    'redis: one that hangs is given up in bounded time, and used again when it goes on',
    async (t) => {
      t.timeout(60_000);
      const server = await RedisServer.start();
      t.teardown(() => server.remove());
      const changes: boolean[] = [];
      const redis = await server.open(t, (lost) => changes.push(lost === undefined));
      const { call } = callsOf([nodeOn(redis, {}), nodeOn(redis, {})]);
      await call();
      server.pause();
      for (let i = 0; i < 4; i++) {
        const before = performance.now();
        await t.throwsAsync(call({ image: `other ${i}`, work: never }), { code: 'STORE_UNAVAILABLE' });
        t.true(performance.now() - before < 10_000);
      }
      await sleep(3500);
      server.resume();
      for (const end = performance.now() + 15_000; ; await sleep(50)) {
        if (await call({ work: never }).catch(() => undefined)) break;
        if (performance.now() > end) return t.fail('it does not come back');
      }
      t.deepEqual(changes.slice(0, 2), [false, true]);
    },
  );

  test.serial('redis: one that is full keeps nothing more, and everything still works', async (t) => {
    const server = await RedisServer.start(['--maxmemory-policy', 'noeviction']);
    t.teardown(() => server.remove());
    const errors: unknown[] = [];
    const redis = await server.open(t);
    const node = () => nodeOn(redis, { maxBytes: 100e6, onError: (error) => errors.push(error) });
    const { call } = callsOf([node(), node()]);
    const work = async () => ({ bytes: Buffer.alloc(200_000, 1) });
    await call({ work });
    // Filled by somebody else: neither results nor keys fit.
    for (let i = 0; i < 20; i++) await server.ask('SET', `foreign ${i}`, 'x'.repeat(100_000));
    await server.ask('CONFIG', 'SET', 'maxmemory', '1500000');
    for (let i = 0; i < 5; i++) {
      const made = await call({ image: `large ${i}`, idempotencyKey: `key ${i}`, work });
      t.false(made.replayed);
      t.is(made.value.bytes.length, 200_000);
    }
    t.true(errors.length > 0);
    // Filled by results: the older half makes room.
    await server.ask('FLUSHDB');
    const used = Number(/used_memory:(\d+)/.exec(String(await server.ask('INFO', 'memory')))?.[1]);
    await server.ask('CONFIG', 'SET', 'maxmemory', String(used + 1_500_000));
    errors.length = 0;
    for (let i = 0; i < 30; i++) {
      await call({ image: `many ${i}`, work });
      t.true((await call({ image: `many ${i}`, work: never, node: 1 })).replayed, `result ${i}`);
    }
    t.deepEqual(errors, []);
  });

  test.serial('redis: a result that is not good any more is made anew', async (t) => {
    const server = await ownDatabase();
    const good = new Set<string>();
    const unpack = async ({ bytes }: { bytes: Buffer }) =>
      good.has(bytes.toString()) ? charged({ bytes }) : undefined;
    const node = async () => nodeOn(await server.open(t), { unpack });
    const { call, runs } = callsOf([await node(), await node()]);
    t.false((await call({ idempotencyKey: 'k' })).replayed);
    t.false((await call({ idempotencyKey: 'k', node: 1 })).replayed);
    t.is(runs(), 2);
    good.add('result 2');
    t.true((await call({ idempotencyKey: 'k' })).replayed);
    t.is(runs(), 2);
  });

  test.serial(
    'redis: nothing of it outlives its time, and no key, account or image name lies there in plain',
    async (t) => {
      const server = await ownDatabase();
      const redis = await server.open(t);
      const results = nodeOn(redis, { ttlSeconds: 2 });
      const { call } = callsOf([results, results]);
      await call({ idempotencyKey: 'secret-key', accountId: 'acc_secret', image: 'secret-name' });
      const dump = await server.dump();
      t.regex(dump, /result 1/);
      const { content, image } = await createContentIdentifier(key)(Buffer.from('secret-name'), '');
      for (const secret of ['secret-key', 'acc_secret', 'secret-name', content, image])
        t.false(dump.includes(secret), secret);
      await eventually(async () => (await server.dump()) === '');
    },
  );
} else leaveOut('everything with Redis', noRedis);

test('content names differ by image, settings, background and mask, also in the last byte of a large image', async (t) => {
  const name = nameOf;
  const [a, b] = [Buffer.from('a'), Buffer.from('b')];
  const large = Buffer.alloc(3_000_001, 7);
  const other = Buffer.from(large);
  other[3_000_000] = 8;
  const names = await Promise.all([
    name(a, 's'),
    name(b, 's'),
    name(a, 't'),
    name(a, 's', { background: b }),
    name(b, 's', { background: a }),
    name(a, 's', { background: Buffer.alloc(0) }),
    name(a, 's', { mask: b }),
    name(a, 's', { mask: a }),
    name(a, 's', { background: b, mask: b }),
    name(Buffer.alloc(0), 's'),
    // GMAC fills its last block with zeros; the length tells these apart.
    name(Buffer.from('a\0'), 's'),
    name(large, 's'),
    name(other, 's'),
    name(large.subarray(1), 's'),
  ]);
  t.is(new Set(names).size, names.length);
  t.is(await name(Buffer.from('xab').subarray(1, 2), 's'), await name(a, 's'));
  t.is(await name(Buffer.from(large), 's'), await name(large, 's'));
  t.not(
    (await createContentIdentifier(Buffer.alloc(32, 6))(a, 's')).content,
    await name(a, 's'),
    'each key has names of its own',
  );
});

test('a large image is named in pieces between which others have their turn, with the sum of the whole', async (t) => {
  const image = randomBytes(5 * 2 ** 20 + 3);
  const mac = createCipheriv('aes-256-gcm', key, Buffer.alloc(12)).setAAD(image);
  mac.final();
  let turns = 0;
  let over = false;
  const others = (async () => {
    for (; !over; turns++) await setImmediate();
  })();
  const ids = await createContentIdentifier(key)(image, 's');
  over = true;
  await others;
  t.true(turns >= 5, `${turns} turns`);
  // Books remember names: they stay what they are.
  const tag = mac.getAuthTag().toString('base64url');
  t.deepEqual(ids, { content: textHash(JSON.stringify([tag, '', 's'])), image: tag });
});

for (const idempotencyKey of [undefined, 'key'])
  test(`memory is retained until the work ends, whoever left: ${idempotencyKey ?? 'no'} Idempotency-Key`, async (t) => {
    const results = new Idempotency(inMemoryStore(t));
    const retained = new Map<string, number>();
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const running: AbortSignal[] = [];
    const call = (name: string, signal: AbortSignal) =>
      getOrMake(
        results,
        {
          idempotencyKey,
          signal,
          retain: () => {
            retained.set(name, (retained.get(name) ?? 0) + 1);
            return async () => void retained.set(name, (retained.get(name) ?? 0) - 1);
          },
        },
        async () => contentOf('image'),
        async (_, sharedSignal) => {
          running.push(sharedSignal);
          await finished;
          return charged({ bytes: Buffer.from('result') });
        },
      );
    const leave = new AbortController();
    const first = call('first', leave.signal);
    const left = t.throwsAsync(first, { message: 'gone' });
    await eventually(() => running.length === 1);
    const second = call('second', new AbortController().signal);
    // Its content is small: it has joined the work long before.
    await sleep(100);
    leave.abort(new Error('gone'));
    await left;
    await sleep(20);
    t.false(running[0]?.aborted, 'the second waits for it');
    t.true((retained.get('first') ?? 0) > 0);
    finish();
    await (await second).end('delivered');
    await eventually(() => [...retained.values()].every((count) => count === 0));
    t.is(running.length, 1);
  });

test('naming an image ends when its callers have left', async (t) => {
  const gone = new Error('the client left');
  const image = Buffer.alloc(20 * 2 ** 20, 7);
  const store = inMemoryStore(t);
  for (const idempotencyKey of [undefined, 'key']) {
    const results = new Idempotency(store);
    const leave = new AbortController();
    const leaving = getOrMake(
      results,
      { idempotencyKey, signal: leave.signal },
      async () => ({ ...contentOf(''), image }),
      async () => t.fail('made') as never,
    );
    let ended: unknown;
    leaving.catch((error: unknown) => {
      ended = error;
    });
    for (let turn = 0; turn < 3; turn++) await setImmediate();
    leave.abort(gone);
    // A megabyte a turn: the whole image would take twenty.
    for (let turn = 0; turn < 3; turn++) await setImmediate();
    t.is(results.stats.inFlight, 0);
    t.is(ended, gone);
  }
});
