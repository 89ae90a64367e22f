import test from 'ava';
import { LoadOnce } from '../../src/engine/loadOnce.ts';

/** Loads that the test ends. */
function start() {
  const loads: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const once = new LoadOnce(() => new Promise((resolve, reject) => loads.push({ resolve, reject })));
  return { once, loads };
}

test('a forgotten load that fails does not forget the next one', async (t) => {
  const { once, loads } = start();
  const first = once.ready();
  void once.forget();
  const second = once.ready();
  loads[0]?.reject(new Error('the first'));
  await t.throwsAsync(first, { message: 'the first' });
  t.true(once.started);
  const third = once.ready();
  loads[1]?.resolve();
  await Promise.all([second, third]);
  t.is(loads.length, 2);
});

test('callers share a load, one that leaves does not stop it, and after a failure the next call loads', async (t) => {
  const { once, loads } = start();
  const leave = new AbortController();
  const leaving = once.ready(leave.signal);
  const waiting = once.ready();
  leave.abort(new Error('left'));
  await t.throwsAsync(leaving, { message: 'left' });
  loads[0]?.reject(new Error('failed'));
  await t.throwsAsync(waiting, { message: 'failed' });
  t.false(once.started);
  const again = once.ready();
  loads[1]?.resolve();
  await again;
  t.is(loads.length, 2);
  t.true(new LoadOnce(() => t.fail() as never, { loaded: true }).started);
});
