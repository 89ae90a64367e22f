import test from 'ava';
import { bestRate, modelTable, parseTable, run } from '../../bench/batching.ts';

test('the model: a fixed cost and one for each image, sizes by halves', (t) => {
  t.deepEqual(modelTable({ fixed: 4, item: 1, largest: 8 }), [
    [1, 5],
    [2, 6],
    [4, 8],
    [8, 12],
  ]);
  t.deepEqual(modelTable({ fixed: 1, item: 2, largest: 1 }), [[1, 3]]);
  t.is(
    bestRate([
      [1, 5],
      [2, 6],
      [8, 40],
    ]),
    1000 / 3,
  );
});

test('a table of a device is read from its file, in any order', (t) => {
  const latencies = [
    { batch: 4, ms: 7.5 },
    { batch: 1, ms: 4 },
  ];
  t.deepEqual(parseTable(JSON.stringify({ device: 'L4', latencies })), {
    device: 'L4',
    table: [
      [1, 4],
      [4, 7.5],
    ],
  });
  for (const wrong of [
    { latencies },
    { device: 'L4', latencies: [] },
    { device: 'L4', latencies: [{ batch: 0, ms: 1 }] },
  ])
    t.throws(() => parseTable(JSON.stringify(wrong)), { message: /needs/ });
});

test('the simulated devices keep both goals', async (t) => {
  const options = {
    fixed: 4,
    item: 1,
    largest: 8,
    delay: 2,
    devices: [1, 3],
    runs: 3000,
  };
  const { figures } = await run(options, { progress: () => {} });
  t.is(figures.length, 4);
  for (const { name, median, goal } of figures) {
    if (goal && 'atMost' in goal) t.true(median >= 1 && median <= goal.atMost, `${name} ${median}`);
    if (goal && 'atLeast' in goal) t.true(median >= goal.atLeast && median <= 1.01, `${name} ${median}`);
  }
});
