import test from 'ava';
import { ConcurrencyLimit } from '../../src/limits/concurrency.ts';

test('an account has so many calls at a time, another its own', (t) => {
  const limit = new ConcurrencyLimit(2);
  const [first, second] = [limit.enter('a'), limit.enter('a')];
  t.truthy(second);
  t.is(limit.enter('a'), undefined);
  t.truthy(limit.enter('b'));
  first?.();
  first?.();
  t.truthy(limit.enter('a'));
  t.is(limit.enter('a'), undefined);
});

test('0 is no limit', (t) => {
  const limit = new ConcurrencyLimit(0);
  for (let i = 0; i < 1000; i++) t.truthy(limit.enter('a'));
});
