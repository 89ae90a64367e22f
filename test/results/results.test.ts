import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { createContentName } from '../../src/results/hash.ts';
import { type OnceRequest, Results, type ResultsOptions } from '../../src/results/results.ts';

type Picture = { readonly bytes: Uint8Array };

function make(options: Partial<ResultsOptions<Picture>> = {}) {
  const errors: unknown[] = [];
  const results = new Results<Picture>({
    keepSeconds: 600,
    maxBytes: 1e6,
    bytesOf: ({ bytes }) => bytes.length,
    onError: (error) => errors.push(error),
    ...options,
  });
  let runs = 0;
  const call = (request: Partial<OnceRequest<Picture>> & { image?: string } = {}) =>
    results.once({
      accountId: 'acc_1',
      content: async () => request.image ?? 'image',
      work: async () => {
        runs++;
        await sleep(20);
        return { bytes: Buffer.from(`result ${runs}`) };
      },
      signal: new AbortController().signal,
      ...request,
    });
  return { results, call, errors, runs: () => runs };
}

test('the same image and settings are worked on once, the repeat gets the very same result', async (t) => {
  const { call, runs } = make();
  const first = await call();
  const second = await call({ idempotencyKey: 'other key' });
  t.false(first.replayed);
  t.true(second.replayed);
  t.is(second.value, first.value);
  t.is(runs(), 1);
  t.false((await call({ image: 'another' })).replayed);
});

test('the same key gets the kept result without looking at the image', async (t) => {
  const { call } = make();
  const first = await call({ idempotencyKey: 'k' });
  const content = async () => t.fail() as never;
  const second = await call({ idempotencyKey: 'k', content });
  t.deepEqual([second.replayed, second.value], [true, first.value]);
});

test('a key leads to a result that was kept under another one', async (t) => {
  const { call, runs } = make();
  await call();
  t.true((await call({ idempotencyKey: 'k' })).replayed);
  t.true((await call({ idempotencyKey: 'k', image: 'another' })).replayed);
  t.is(runs(), 1);
});

test('accounts share nothing', async (t) => {
  const { call, runs } = make();
  await call({ idempotencyKey: 'k' });
  t.false((await call({ idempotencyKey: 'k', accountId: 'acc_2' })).replayed);
  t.is(runs(), 2);
});

for (const [name, keys] of [
  ['key', ['k', 'k', 'k']],
  ['image', [undefined, undefined, undefined]],
  ['image under different keys', ['k', 'l', 'm']],
] as const) {
  test(`overlapping calls with the same ${name} are one`, async (t) => {
    const { call, runs } = make();
    const all = await Promise.all(keys.map((idempotencyKey) => call({ idempotencyKey })));
    t.deepEqual(all.map(({ replayed }) => replayed).sort(), [false, true, true]);
    t.is(new Set(all.map(({ value }) => value)).size, 1);
    t.is(runs(), 1);
  });

  test(`when the first of overlapping calls with the same ${name} fails, the second runs`, async (t) => {
    const { call } = make();
    let runs = 0;
    const work = async () => {
      const run = ++runs;
      await sleep(5);
      if (run === 1) throw new Error('no subject');
      return { bytes: new Uint8Array(1) };
    };
    const settled = await Promise.allSettled(keys.map((idempotencyKey) => call({ idempotencyKey, work })));
    t.deepEqual(
      settled.map((one) => (one.status === 'fulfilled' ? one.value.replayed : one.reason.message)),
      ['no subject', false, true],
    );
  });
}

test('failures are not kept', async (t) => {
  const { call, results } = make();
  await t.throwsAsync(call({ idempotencyKey: 'k', work: async () => Promise.reject(new Error('no')) }));
  await t.throwsAsync(
    call({ idempotencyKey: 'k', content: async () => Promise.reject(new Error('download')) }),
  );
  t.deepEqual(results.stats, { results: 0, bytes: 0, inFlight: 0 });
  t.false((await call({ idempotencyKey: 'k' })).replayed);
});

test('a client that goes away does not spoil the one that waits, and its work is not done again', async (t) => {
  const { call } = make();
  const leaving = new AbortController();
  let finish = () => {};
  let started = () => {};
  const working = new Promise<void>((resolve) => {
    started = resolve;
  });
  const work = async () => {
    started();
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return { bytes: Buffer.from('result') };
  };
  const gone = call({ idempotencyKey: 'k', signal: leaving.signal, work });
  await working;
  const stays = call({ work: async () => t.fail() as never });
  await sleep(5);
  leaving.abort(new Error('gone'));
  await t.throwsAsync(gone, { message: 'gone' });
  finish();
  // Nobody else got it: this one is told of the charge.
  t.false((await stays).replayed);
  t.true((await call()).replayed);
});

test('a result that was not delivered is told of to the next one, and to that one alone', async (t) => {
  const { call, runs } = make();
  const first = await call();
  const beside = await call();
  beside.notDelivered();
  t.true((await call()).replayed, 'the first one still has it');
  first.notDelivered();
  t.false((await call({ idempotencyKey: 'k' })).replayed);
  t.true((await call({ idempotencyKey: 'k' })).replayed);
  t.is(runs(), 1);
});

test('when all go away the work is told to stop', async (t) => {
  const { call } = make();
  const leaving = new AbortController();
  let stopped = false;
  const work = (signal: AbortSignal) =>
    new Promise<Picture>((_, reject) => {
      signal.addEventListener('abort', () => {
        stopped = true;
        reject(signal.reason);
      });
    });
  const gone = call({ idempotencyKey: 'k', signal: leaving.signal, work });
  await sleep(2);
  leaving.abort(new Error('gone'));
  await t.throwsAsync(gone);
  await sleep(1);
  t.true(stopped);
});

test('a result is gone when its time is up', async (t) => {
  const { call, results } = make({ keepSeconds: 0.05 });
  await call({ idempotencyKey: 'k' });
  t.true((await call({ idempotencyKey: 'k' })).replayed);
  await sleep(80);
  t.is(results.stats.results, 0);
  t.false((await call({ idempotencyKey: 'k' })).replayed);
});

test('a key whose result had to make room works again', async (t) => {
  const { call } = make({ maxBytes: 3000 });
  const work = async () => ({ bytes: new Uint8Array(1500) });
  await call({ idempotencyKey: 'k', work });
  await call({ image: 'another', work });
  t.false((await call({ idempotencyKey: 'k', work })).replayed);
});

test('with 0 seconds nothing is kept and nobody waits', async (t) => {
  const { call, runs } = make({ keepSeconds: 0 });
  const all = await Promise.all([call({ idempotencyKey: 'k' }), call({ idempotencyKey: 'k' })]);
  t.deepEqual(
    all.map(({ replayed }) => replayed),
    [false, false],
  );
  t.is(runs(), 2);
});

test('1000 repeats leave nothing behind but the result', async (t) => {
  const { call, results } = make();
  for (let i = 0; i < 1000; i++) await call({});
  t.is(results.stats.results, 1);
  t.is(results.stats.inFlight, 0);
});

test('names tell images, settings and backgrounds apart, also in the last byte of a large one', (t) => {
  const name = createContentName();
  const [a, b] = [Buffer.from('a'), Buffer.from('b')];
  const large = Buffer.alloc(3_000_001, 7);
  const other = Buffer.from(large);
  other[3_000_000] = 8;
  const names = [
    name(a, 's'),
    name(b, 's'),
    name(a, 't'),
    name(a, 's', b),
    name(b, 's', a),
    name(a, 's', Buffer.alloc(0)),
    name(Buffer.alloc(0), 's'),
    // GMAC fills its last block with zeros; the length tells these apart.
    name(Buffer.from('a\0'), 's'),
    name(large, 's'),
    name(other, 's'),
    name(large.subarray(1), 's'),
  ];
  t.is(new Set(names).size, names.length);
  t.is(name(Buffer.from('xab').subarray(1, 2), 's'), name(a, 's'));
  t.is(name(Buffer.from(large), 's'), name(large, 's'));
  t.not(createContentName()(a, 's'), name(a, 's'), 'each process has names of its own');
});
