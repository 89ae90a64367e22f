import test from 'ava';
import fc from 'fast-check';
import { mean, median, quantile, slope, tally } from '../../bench/lib/stats.ts';

test('a quantile lies between the nearest ranks', (t) => {
  const values = [40, 10, 30, 20];
  t.is(quantile(values, 0), 10);
  t.is(quantile(values, 1), 40);
  t.is(quantile(values, 0.5), 25);
  t.is(quantile(values, 0.25), 17.5);
  t.is(quantile([7], 0.99), 7);
  t.deepEqual(values, [40, 10, 30, 20]);
  t.is(quantile([], 0.5), Number.NaN);
});

test('numbers are ordered as numbers', (t) => {
  t.is(median([100, 9, 20]), 20);
  t.is(median([1, 2, 3, 4]), 2.5);
});

test('quantiles grow with q and stay within the values', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 30 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (values, a, b) => {
          const [low, high] = [quantile(values, Math.min(a, b)), quantile(values, Math.max(a, b))];
          return low <= high + 1e-6 && low >= Math.min(...values) && high <= Math.max(...values);
        },
      ),
    ),
  );
});

test('slope() of a line is its slope, and 0 if all points have the same x', (t) => {
  t.is(
    slope([
      [0, 5],
      [1, 7],
      [2, 9],
    ]),
    2,
  );
  t.is(
    slope([
      [3, 1],
      [3, 9],
    ]),
    0,
  );
  t.is(mean([1, 2, 6]), 3);
});

test('words are counted, most frequent first', (t) => {
  t.deepEqual(Object.entries(tally(['ok', 'busy', 'ok', 'busy', 'ok', 'lost'])), [
    ['ok', 3],
    ['busy', 2],
    ['lost', 1],
  ]);
});
