import test from 'ava';
import { longer } from '../../bench/subject.ts';

test('the addition is the median of the differences of neighbours, not the difference of the medians', (t) => {
  t.is(longer([100, 200, 300], [110, 205, 320]), 10);
  t.is(longer([100, 300, 500], [90, 301, 600]), 1);
});
