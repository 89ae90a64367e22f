import { mock } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import test from 'ava';
import fc from 'fast-check';
import { BoundedStore } from '../../src/idempotency/boundedStore.ts';

const bytesOf = (entry: unknown) => (entry as Uint8Array).length;
const block = (bytes: number) => new Uint8Array(bytes);

test('the oldest goes when the bytes run out, by reference and without copies', (t) => {
  const store = new BoundedStore(4000, bytesOf, 1e6);
  const [a, b, c] = [block(1000), block(1000), block(1000)];
  store.set('a', a);
  store.set('b', b);
  t.is(store.get('a'), a);
  store.set('c', c);
  t.deepEqual([store.get('a'), store.get('b'), store.get('c')], [undefined, b, c]);
  store.clear();
});

test('writing again makes it the youngest and counts it once', (t) => {
  const store = new BoundedStore(4000, bytesOf, 1e6);
  for (const key of ['a', 'b', 'a']) store.set(key, block(1000));
  const { bytes } = store;
  store.set('c', block(1000));
  t.is(store.bytes, bytes);
  t.deepEqual([store.has('a'), store.has('b'), store.has('c')], [true, false, true]);
  store.clear();
  t.is(store.bytes, 0);
});

test('what is larger than the store is not kept, nor what it would have replaced', (t) => {
  const store = new BoundedStore(4000, bytesOf, 1e6);
  store.set('a', block(10));
  store.set('b', block(10));
  store.set('a', block(4000));
  t.deepEqual([store.has('a'), store.has('b')], [false, true]);
  store.clear();
});

test.serial('nothing outlives its time, even if nobody asks', (t) => {
  const { timers } = mock;
  timers.enable({ apis: ['setTimeout', 'Date'] });
  t.teardown(() => timers.reset());
  const store = new BoundedStore(1e6, bytesOf, 40, () => Date.now());
  store.set('a', block(10));
  timers.tick(25);
  store.set('b', block(10));
  timers.tick(14);
  t.true(store.has('a'), 'its time is not over');
  timers.tick(1);
  t.deepEqual([store.has('a'), store.has('b')], [false, true]);
  timers.tick(25);
  t.is(store.size, 0);
  t.is(store.bytes, 0);
});

test.serial('nothing stays longer because the clock of the machine is set back', async (t) => {
  const store = new BoundedStore(1e6, bytesOf, 40);
  const { now } = Date;
  store.set('a', block(10));
  try {
    Date.now = () => now() - 86_400_000;
    const before = performance.now();
    while (store.size > 0 && performance.now() - before < 5000) await setTimeout(10);
  } finally {
    Date.now = now;
  }
  t.is(store.size, 0);
  store.clear();
});

test('bytes are those of what is kept, and never above the bound', (t) => {
  const step = fc.record({
    key: fc.integer({ min: 0, max: 20 }),
    bytes: fc.integer({ min: 0, max: 5000 }),
    remove: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (all) => {
      const store = new BoundedStore(20_000, bytesOf, 1e6);
      const last = new Map<number, number>();
      for (const { key, bytes, remove } of all) {
        if (remove) store.delete(String(key));
        else store.set(String(key), block(bytes));
        last.set(key, bytes);
        let sum = 0;
        for (const [other, size] of last) if (store.has(String(other))) sum += size + 512;
        t.is(store.bytes, sum);
        t.true(store.bytes <= 20_000);
      }
      store.clear();
    }),
    { numRuns: 50 },
  );
});

test('an entry that has expired is not returned, although its timer has not run yet', (t) => {
  let now = 0;
  const store = new BoundedStore(1e6, bytesOf, 40, () => now);
  store.set('a', block(10));
  now = 39;
  t.truthy(store.get('a'));
  now = 40;
  t.is(store.get('a'), undefined);
  store.clear();
});
