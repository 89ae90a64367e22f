import test from 'ava';
import { longer } from '../../bench/subject.ts';

test('longer() is the median of pairwise differences, not the difference of medians', (t) => {
  t.is(longer([100, 200, 300], [110, 205, 320]), 10);
  t.is(longer([100, 300, 500], [90, 301, 600]), 1);
});
