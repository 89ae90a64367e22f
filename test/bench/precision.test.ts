import test from 'ava';
import { matteDifference, worstSquare } from '../../bench/lib/matteDifference.ts';
import { byOperator, formsTable, ratiosOf } from '../../bench/precision.ts';

test('differences of two mattes: overall, between, largest and signed', (t) => {
  const reference = Float32Array.of(0, 0.5, 1, 0.25);
  const found = Float32Array.of(0.125, 0.25, 1, 0.5);
  t.deepEqual(matteDifference(reference, found), {
    mean: 0.15625,
    edge: 0.25,
    edgeShare: 0.5,
    largest: 0.25,
    bias: 0.03125,
  });
  t.is(matteDifference(Float32Array.of(0, 1), Float32Array.of(1, 1)).edge, 0);
  t.throws(() => matteDifference(reference, found.subarray(1)), { instanceOf: RangeError });
});

test('the worst square is found where the differences are', (t) => {
  const side = 64;
  const reference = new Float32Array(side * side);
  const found = new Float32Array(side * side);
  for (let y = 40; y < 44; y++) for (let x = 17; x < 23; x++) found[y * side + x] = 1;
  const { left, top } = worstSquare(reference, found, { width: side, height: side }, 16);
  t.true(left <= 17 && left + 16 >= 23);
  t.true(top <= 40 && top + 16 >= 44);
});

const times = (...processor: number[]) => ({ wall: processor.map((ms) => ms / 2), processor });

test('forms are compared by the medians of processor time, those that were measured', (t) => {
  const found = {
    own: times(60, 50, 900),
    eight: times(100, 120, 80),
    floats: times(300, 301, 299),
  };
  t.deepEqual(
    ratiosOf({ threads: 2, times: found }).map(({ name, median: ratio, goal }) => [name, ratio, goal]),
    [
      ['precision.own.over.eight.2', 0.6, { atMost: 0.6 }],
      ['precision.own.over.floats.2', 0.2, undefined],
    ],
  );
  const { rows } = formsTable([{ threads: 1, times: found }], { own: 171 });
  t.deepEqual(rows, [
    ["8 bits, Cutout's operators", 1, 30, 60, 171],
    ["8 bits, ONNX Runtime's operators", 1, 50, 100, '–'],
    ['floats', 1, 150, 300, '–'],
  ]);
});

test('times of a profile are summed by operator, those of nodes only', (t) => {
  const node = (op_name: string, dur: number) => ({ cat: 'Node', dur, args: { op_name } });
  t.deepEqual(
    byOperator([
      node('Add', 1000),
      node('QLinearConv', 5000),
      { cat: 'Session', dur: 9000 },
      node('Add', 500),
    ]),
    [
      ['QLinearConv', 5],
      ['Add', 1.5],
    ],
  );
});
