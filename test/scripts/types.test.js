import test from 'ava';
import { joined, learnHidden } from '../../tools/subject-types/hidden.js';
import { learnWeights, logitsOf } from '../../tools/subject-types/logistic.js';

// Two inputs whose signs agree or not, which no linear head can separate.
const rows = Array.from({ length: 3000 }, (_, at) => {
  const values = [Math.sin(at * 12.9898) * 2, Math.cos(at * 78.233) * 2];
  return { values, label: values[0] * values[1] > 0 ? 1 : 0, weight: 1 / 3000 };
});
const linear = { weights: [Float64Array.of(0.1, -0.2), Float64Array.of(-0.3, 0.4)], bias: [0.05, -0.05] };
const before = rows.map(({ values }) => logitsOf(linear, values));
const learn = (seed) => learnHidden(rows, before, { types: 2, seed });

function headLogits({ first, firstBias, second, secondBias }, values) {
  const units = logitsOf({ weights: first, bias: firstBias }, values).map((unit) => Math.max(unit, 0));
  return logitsOf({ weights: second, bias: secondBias }, units);
}

const right = (logits) =>
  logits.filter(([zero, one], at) => (one > zero ? 1 : 0) === rows[at].label).length / rows.length;

test('a hidden layer learns what no linear head can, reproducibly from the same seed', (t) => {
  const hidden = learn('one');
  t.true(right(before) < 0.65);
  t.true(right(rows.map(({ values }) => headLogits(joined(linear, hidden), values))) > 0.85);
  t.deepEqual(learn('one'), hidden);
  t.notDeepEqual(learn('another').into, hidden.into);
});

test('the linear logits pass through the combined head unchanged', (t) => {
  const n = 2;
  const silent = { into: [new Float64Array(n)], intoBias: [0], out: [[0], [0]], outBias: [0, 0] };
  const head = joined(linear, silent);
  t.is(head.first.length, 2 * 2 + 1);
  for (const [at, { values }] of rows.entries()) {
    const found = headLogits(head, values);
    for (const type of [0, 1]) t.true(Math.abs(found[type] - before[at][type]) < 1e-12);
  }
});

test('a linear head learns a separable problem, and a penalty keeps it near the given weights', (t) => {
  const sides = rows.map((row) => ({ ...row, label: row.values[0] > 0.5 ? 1 : 0 }));
  const prior = [Float64Array.of(0, 0), Float64Array.of(0, 0)];
  const learnt = learnWeights(sides, { types: 2, prior, penalty: 0.001 });
  const correct = sides.filter(({ values, label }) => {
    const [zero, one] = logitsOf(learnt, values);
    return (one > zero ? 1 : 0) === label;
  });
  t.true(correct.length / sides.length > 0.95);
  const held = learnWeights(sides, { types: 2, prior, penalty: 1000 });
  for (const row of held.weights) for (const weight of row) t.true(Math.abs(weight) < 0.01);
});
