import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext, TestFn } from 'ava';
import type { Caller, Content, ContentNames, Idempotency } from '../../src/idempotency/idempotency.ts';
import type { Charged } from '../../src/idempotency/sharedResult.ts';

export interface Image {
  readonly bytes: Buffer;
}

export interface KeepOptions {
  /** Default 600. */
  readonly ttlSeconds?: number;
  /** Default 1 MB. */
  readonly maxBytes?: number;
}

export type MakeNodes = (
  t: ExecutionContext,
  options: KeepOptions,
) => Promise<readonly [Idempotency<Image>, Idempotency<Image>]>;

export type Call = Partial<Caller> & {
  readonly load?: (signal: AbortSignal) => Promise<Content>;
  readonly work?: (signal: AbortSignal) => Promise<Image>;
  readonly image?: string;
  readonly node?: 0 | 1;
};

/** As from the ledger, for results without a charge. */
export const charged = (value: Image): Charged<Image> => ({
  value,
  chargeHandle: { isChargeValid: async () => true, deliver: async () => {}, release: async () => {} },
});

/** What a call with this image and no settings is about. */
export const contentOf = (image: string): Content => ({
  image: Buffer.from(image),
  background: undefined,
  settings: '',
});

/** A call as the product makes it: by its key, then by its content. */
export const getOrMake = (
  node: Idempotency<Image>,
  call: Partial<Caller>,
  load: (signal: AbortSignal) => Promise<Content>,
  make: (names: ContentNames, signal: AbortSignal) => Promise<Charged<Image>>,
) => {
  const caller: Caller = {
    accountId: 'acc_1',
    signal: new AbortController().signal,
    retain: () => async () => {},
    ...call,
  };
  return node.resultFor(caller, async (signal) =>
    node.resultForContent(caller, await load(signal), make, signal),
  );
};

/** Calls of two nodes with the same results: `node` 0 or 1. Work takes 20 ms and returns the number of its run. */
export function callsOf(nodes: readonly [Idempotency<Image>, Idempotency<Image>]) {
  let runs = 0;
  let running = 0;
  let most = 0;
  const run = async () => {
    runs++;
    running++;
    most = Math.max(most, running);
    await sleep(20);
    running--;
    return { bytes: Buffer.from(`result ${runs}`) };
  };
  const call = ({
    image = 'image',
    node = 0,
    work = run,
    load = async () => contentOf(image),
    ...caller
  }: Call = {}) => getOrMake(nodes[node], caller, load, async (_, signal) => charged(await work(signal)));
  return { call, runs: () => runs, maxRunning: () => most };
}

/** Behaviour of cached results, wherever they are stored. Registers its tests with `test`. */
export function testIdempotencyContract(test: TestFn, name: string, make: MakeNodes): void {
  const is = (title: string) => `${name}: ${title}`;
  const start = async (t: ExecutionContext, options: KeepOptions = {}) => {
    const nodes = await make(t, options);
    return { nodes, ...callsOf(nodes) };
  };

  test(is('the same image and settings are worked on once, the repeat gets the result'), async (t) => {
    const { call, runs } = await start(t);
    const first = await call();
    const second = await call({ idempotencyKey: 'other key', node: 1 });
    t.false(first.replayed);
    t.true(second.replayed);
    t.deepEqual(second.value.bytes, first.value.bytes);
    t.is(runs(), 1);
    t.false((await call({ image: 'another', node: 1 })).replayed);
  });

  test(is('the same key gets the kept result without looking at the image'), async (t) => {
    const { call } = await start(t);
    const first = await call({ idempotencyKey: 'k' });
    const load = async () => t.fail() as never;
    const second = await call({ idempotencyKey: 'k', load, node: 1 });
    t.true(second.replayed);
    t.deepEqual(second.value.bytes, first.value.bytes);
  });

  test(is('a key leads to a result that was kept under another one'), async (t) => {
    const { call, runs } = await start(t);
    await call();
    t.true((await call({ idempotencyKey: 'k', node: 1 })).replayed);
    t.true((await call({ idempotencyKey: 'k', image: 'another' })).replayed);
    t.is(runs(), 1);
  });

  test(is('accounts share nothing'), async (t) => {
    const { call, runs } = await start(t);
    await call({ idempotencyKey: 'k' });
    t.false((await call({ idempotencyKey: 'k', accountId: 'acc_2', node: 1 })).replayed);
    t.is(runs(), 2);
  });

  for (const [what, keys] of [
    ['key', ['k', 'k', 'k', 'k']],
    ['image', [undefined, undefined, undefined, undefined]],
    ['image under different keys', ['k', 'l', 'm', 'n']],
  ] as const) {
    const overlapping = (each: (idempotencyKey: string | undefined, node: 0 | 1) => Promise<unknown>) =>
      keys.map((key, index) => each(key, index % 2 ? 1 : 0));

    test(is(`overlapping calls with the same ${what} are one`), async (t) => {
      const { call, runs } = await start(t);
      const all = await Promise.all(
        keys.map((idempotencyKey, index) => call({ idempotencyKey, node: index % 2 ? 1 : 0 })),
      );
      t.deepEqual(all.map(({ replayed }) => replayed).sort(), [false, true, true, true]);
      for (const { value } of all) t.deepEqual(value.bytes, Buffer.from('result 1'));
      t.is(runs(), 1);
    });

    test(is(`when the first of overlapping calls with the same ${what} fails, another runs`), async (t) => {
      const { call } = await start(t);
      let [runs, running] = [0, 0];
      const work = async () => {
        const run = ++runs;
        t.is(++running, 1, 'one at a time');
        await sleep(5);
        running--;
        if (run === 1) throw new Error('no subject');
        return { bytes: Buffer.from('done') };
      };
      const settled = await Promise.allSettled(
        overlapping((idempotencyKey, node) => call({ idempotencyKey, node, work })),
      );
      const told = settled.map((one) =>
        one.status === 'fulfilled' ? (one.value as { replayed: boolean }).replayed : one.reason.message,
      );
      t.deepEqual(told.map(String).sort(), ['false', 'no subject', 'true', 'true']);
      t.is(runs, 2);
    });
  }

  test(is('100 calls at once, each image 10 times on both nodes, are 10 runs'), async (t) => {
    const { call, runs } = await start(t);
    const all = await Promise.all(
      Array.from({ length: 100 }, (_, i) => call({ image: `image ${i % 10}`, node: i % 3 ? 1 : 0 })),
    );
    t.is(runs(), 10);
    t.is(all.filter(({ replayed }) => !replayed).length, 10);
  });

  test(is('failures are not kept'), async (t) => {
    const { call, nodes } = await start(t);
    await t.throwsAsync(call({ idempotencyKey: 'k', work: async () => Promise.reject(new Error('no')) }), {
      message: 'no',
    });
    await t.throwsAsync(
      call({ idempotencyKey: 'k', load: async () => Promise.reject(new Error('download')) }),
      { message: 'download' },
    );
    t.deepEqual(nodes[0].stats, { results: 0, bytes: 0, inFlight: 0 });
    t.false((await call({ idempotencyKey: 'k', node: 1 })).replayed);
  });

  for (const node of [0, 1] as const) {
    test(
      is(`a client that disconnects does not affect one that waits on ${node ? 'the other' : 'its'} node`),
      async (t) => {
        const { call } = await start(t);
        const leaving = new AbortController();
        let finish = () => {};
        let started = () => {};
        const working = new Promise<void>((resolve) => {
          started = resolve;
        });
        const work = async (signal: AbortSignal) => {
          started();
          await new Promise<void>((resolve, reject) => {
            finish = resolve;
            signal.addEventListener('abort', () => reject(signal.reason));
          });
          return { bytes: Buffer.from('result') };
        };
        const gone = call({ idempotencyKey: 'k', signal: leaving.signal, work });
        await working;
        let ranAgain = false;
        const again = async () => {
          ranAgain = true;
          return { bytes: Buffer.from('again') };
        };
        const stays = call({ work: again, node });
        await sleep(60);
        leaving.abort(new Error('gone'));
        await t.throwsAsync(gone, { message: 'gone' });
        finish();
        // No other caller got it: this one's answer reports the charge. Work without callers on its node ends.
        t.false((await stays).replayed);
        t.is(ranAgain, node === 1 && name !== 'memory');
        t.true((await call()).replayed);
      },
    );
  }

  test(is('a result that was not delivered is told of to the next one, and to that one alone'), async (t) => {
    const { call, runs } = await start(t);
    const first = await call();
    const beside = await call({ node: 1 });
    await beside.end('broken');
    t.true((await call()).replayed, 'the first one still has it');
    await first.end('broken');
    t.false((await call({ idempotencyKey: 'k', node: 1 })).replayed);
    t.true((await call({ idempotencyKey: 'k' })).replayed);
    t.is(runs(), 1);
  });

  test(is('when all go away the work is told to stop'), async (t) => {
    const { call } = await start(t);
    const leaving = new AbortController();
    let stopped = false;
    let started = () => {};
    const working = new Promise<void>((resolve) => {
      started = resolve;
    });
    const work = (signal: AbortSignal) =>
      new Promise<Image>((_, reject) => {
        started();
        signal.addEventListener('abort', () => {
          stopped = true;
          reject(signal.reason);
        });
      });
    const gone = call({ idempotencyKey: 'k', signal: leaving.signal, work });
    await working;
    leaving.abort(new Error('gone'));
    await t.throwsAsync(gone, { message: 'gone' });
    t.true(stopped);
    t.false((await call({ idempotencyKey: 'k', node: 1 })).replayed);
  });

  test(is('a result is gone when its time is up'), async (t) => {
    const { call } = await start(t, { ttlSeconds: 2 });
    await call({ idempotencyKey: 'k' });
    t.true((await call({ idempotencyKey: 'k', node: 1 })).replayed);
    await sleep(2050);
    t.false((await call({ idempotencyKey: 'k', node: 1 })).replayed);
  });

  test(is('the oldest result makes room, and a key that led to it works again'), async (t) => {
    const { call, nodes } = await start(t, { maxBytes: 30_000 });
    const work = async () => ({ bytes: Buffer.alloc(12_000) });
    await call({ idempotencyKey: 'k', work });
    await call({ image: 'second', work, node: 1 });
    t.true((await call({ idempotencyKey: 'k', node: 1 })).replayed);
    await call({ image: 'third', work });
    t.is(nodes[0].stats.results - (name === 'memory' ? 1 : 0), 2);
    t.true(nodes[0].stats.bytes >= 24_000 && nodes[0].stats.bytes <= 30_000);
    t.true((await call({ image: 'second', work })).replayed);
    t.false((await call({ idempotencyKey: 'k', work, node: 1 })).replayed);
  });

  test(is('a result beyond the bound is not kept; all who wait on its node get it'), async (t) => {
    const { call, nodes, runs } = await start(t, { maxBytes: 10_000 });
    let large = 0;
    const work = async () => {
      large++;
      await sleep(20);
      return { bytes: Buffer.alloc(12_000) };
    };
    const all = await Promise.all([call({ work }), call({ work })]);
    t.deepEqual(all.map(({ replayed }) => replayed).sort(), [false, true]);
    t.is(large, 1);
    t.is(nodes[0].stats.results, 0);
    t.false((await call()).replayed);
    t.is(runs(), 1);
  });

  test(is('200 repeats leave nothing behind but the result'), async (t) => {
    const { call, nodes } = await start(t);
    for (let i = 0; i < 200; i++) await call({ node: i % 2 ? 1 : 0 });
    t.is(nodes[0].stats.results, 1);
    t.is(nodes[0].stats.inFlight, 0);
  });
}
