import test from 'ava';
import { noScore, uncertaintyScore } from '../../src/cutout/uncertaintyScore.ts';

const curve = { floor: 0.1, middle: 0.05, steepness: 3 };

test('the score is the floor for sure answers, half of the rest in the middle, and 1 at the end', (t) => {
  t.is(uncertaintyScore(curve, 0), 0.1);
  t.is(uncertaintyScore(curve, 0.05), 0.55);
  t.true(uncertaintyScore(curve, 1) > 0.99);
  t.is(uncertaintyScore(curve, 0.1), Math.round(1000 * (0.1 + 0.9 / (1 + 0.5 ** 3))) / 1000);
});

test('the score rises with the uncertainty', (t) => {
  const scores = Array.from({ length: 50 }, (_, i) => uncertaintyScore(curve, i / 49));
  t.deepEqual(
    scores,
    scores.toSorted((a, b) => a - b),
  );
});

test('a network without a curve gives no score', (t) => {
  t.is(uncertaintyScore(undefined, 0.2), noScore);
  t.is(noScore, -1);
});
