import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { timeSlice } from '../../src/http/timeSlice.ts';

test.serial('little work is done at once', async (t) => {
  const done: number[] = [];
  for (let i = 0; i < 10; i++) timeSlice(() => done.push(i));
  t.is(done.length, 10);
  await turn();
  await turn();
});

test.serial('much work is done in order, a little of it per turn of the event loop', async (t) => {
  const done: number[] = [];
  const each = new Set<number>();
  for (let i = 0; i < 1000; i++) timeSlice(() => done.push(i));
  for (let before = 0; done.length < 1000; before = done.length) {
    await turn();
    each.add(done.length - before);
  }
  t.deepEqual(
    done,
    Array.from({ length: 1000 }, (_, i) => i),
  );
  t.true(Math.max(...each) <= 100, `${[...each]}`);
});
