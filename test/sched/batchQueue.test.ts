import test from 'ava';
import { Queue } from './schedAddon.ts';

const second = 1e9;
/** Fixed cost 2, 1 for each image. */
const buckets = [
  [1, 3],
  [2, 4],
  [4, 6],
  [8, 10],
] as const;

interface Options {
  readonly devices?: number;
  readonly delay?: number;
  readonly ageing?: number;
}

function open({ devices = 1, delay = 5, ageing = second }: Options = {}) {
  const queue = new Queue(devices, delay, ageing);
  const shape = queue.addShape(buckets);
  return { queue, shape };
}

test('an idle device waits for more runs, at most as long as the delay', (t) => {
  const { queue, shape } = open();
  t.true(queue.push(1, 0, shape, 100));
  t.deepEqual(queue.next(100), { refused: [], started: [], wake: 105 });
  queue.push(2, 0, shape, 104);
  t.deepEqual(queue.next(104), { refused: [], started: [], wake: 105 });
  t.deepEqual(queue.next(105).started, [{ device: 0, shape, bucket: 1, members: [1, 2] }]);
  t.deepEqual(queue.finish(0), { completed: [1, 2], cancelled: [] });
});

test('a full batch starts at once, the rest waits for the device', (t) => {
  const { queue, shape } = open();
  for (let id = 0; id < 9; id++) queue.push(id, 0, shape, 0);
  t.deepEqual(queue.next(0), {
    refused: [],
    started: [{ device: 0, shape, bucket: 3, members: [0, 1, 2, 3, 4, 5, 6, 7] }],
  });
  t.deepEqual(queue.next(9), { refused: [], started: [] });
  queue.finish(0);
  t.deepEqual(queue.next(10).started, [{ device: 0, shape, bucket: 0, members: [8] }]);
});

test('a batch has the number of members with which the device computes the most images in a time', (t) => {
  // 5 / 10 is less than 4 / 6; 7 / 10 is more; 3 / 6 is no more than 2 / 4.
  for (const [waiting, members, bucket] of [
    [3, 2, 1],
    [5, 4, 2],
    [7, 7, 3],
  ] as const) {
    const { queue, shape } = open();
    for (let id = 0; id < waiting; id++) queue.push(id, 0, shape, 0);
    const [batch] = queue.next(5).started;
    t.is(batch?.members.length, members);
    t.is(batch?.bucket, bucket);
  }
});

test('a device that gains nothing from batches runs one image at a time', (t) => {
  const queue = new Queue(1, 0, second);
  const shape = queue.addShape([
    [1, 10],
    [2, 20],
    [4, 41],
  ]);
  for (let id = 0; id < 4; id++) queue.push(id, 0, shape, 0);
  t.deepEqual(queue.next(0).started, [{ device: 0, shape, bucket: 0, members: [0] }]);
});

test('several idle devices share the runs and do not wait', (t) => {
  const { queue, shape } = open({ devices: 3 });
  for (let id = 0; id < 5; id++) queue.push(id, 0, shape, 0);
  t.deepEqual(
    queue.next(0).started.map(({ device, members }) => [device, members]),
    [
      [0, [0, 1]],
      [1, [2, 3]],
    ],
  );
  // The last idle device waits for more.
  t.deepEqual(queue.next(4).started, []);
  t.deepEqual(
    queue.next(5).started.map(({ device, members }) => [device, members]),
    [[2, [4]]],
  );
});

test('runs of different shapes are never in one batch, and none waits for the other to fill', (t) => {
  const { queue, shape } = open();
  const other = queue.addShape(buckets);
  queue.push(1, 0, shape, 0);
  for (let id = 2; id < 10; id++) queue.push(id, 0, other, 1);
  t.deepEqual(queue.next(1).started[0]?.members, [2, 3, 4, 5, 6, 7, 8, 9]);
  queue.finish(0);
  t.deepEqual(queue.next(11).started, [{ device: 0, shape, bucket: 0, members: [1] }]);
});

test('a run that waiting would make late starts before the delay has passed', (t) => {
  const { queue, shape } = open();
  queue.push(1, 0, shape, 0, 5);
  t.deepEqual(queue.next(0), { refused: [], started: [], wake: 2 });
  t.deepEqual(queue.next(2).started, [{ device: 0, shape, bucket: 0, members: [1] }]);
});

test('a run that no device can finish in time is refused, at the moment when that is certain', (t) => {
  const { queue, shape } = open();
  queue.push(1, 0, shape, 0, 2);
  t.deepEqual(queue.next(0), { refused: [1], started: [] });
  t.is(queue.cancel(1), 'unknown');
  for (let id = 2; id < 10; id++) queue.push(id, 0, shape, 0);
  t.is(queue.next(0).started[0]?.members.length, 8);
  // The device is free at 10, a run alone ends at 13.
  queue.push(20, 0, shape, 1, 12);
  queue.push(21, 0, shape, 1, 13);
  t.deepEqual(queue.next(1), { refused: [20], started: [], wake: 11 });
  // The batch takes longer than expected.
  t.deepEqual(queue.next(11), { refused: [21], started: [] });
});

test('a run that only a small batch can finish in time does not hold up a full one', (t) => {
  const { queue, shape } = open();
  queue.push(1, 0, shape, 0, 4);
  for (let id = 2; id < 10; id++) queue.push(id, 0, shape, 0, 100);
  t.deepEqual(queue.next(0), {
    refused: [1],
    started: [{ device: 0, shape, bucket: 3, members: [2, 3, 4, 5, 6, 7, 8, 9] }],
  });
});

test('within a flow the earliest deadline is first; a run without one ages', (t) => {
  const queue = new Queue(1, 0, 50);
  const shape = queue.addShape([[1, 1]]);
  queue.push(1, 0, shape, 0);
  queue.push(2, 0, shape, 0, 60);
  queue.push(3, 0, shape, 1, 40);
  const order = [];
  for (let now = 1; now < 4; now++) {
    order.push(...queue.next(now).started.flatMap(({ members }) => members));
    queue.finish(0);
  }
  t.deepEqual(order, [3, 1, 2]);
});

test('flows share the seats of a batch and the time of a device, whatever their backlog', (t) => {
  const { queue, shape } = open();
  for (let id = 0; id < 40; id++) queue.push(id, 1, shape, 0);
  t.is(queue.next(0).started[0]?.members.length, 8);
  // A flow that arrives later neither waits for the backlog nor is it paid for its absence.
  for (let id = 100; id < 140; id++) queue.push(id, 2, shape, 1);
  for (const now of [10, 20, 30]) {
    queue.finish(0);
    const members = queue.next(now).started[0]?.members ?? [];
    const ofSecond = members.filter((id) => id >= 100).length;
    t.true(ofSecond >= 4 && ofSecond <= 5, `${members}`);
  }
});

test('a cancelled run leaves the queue, or its batch as that ends; the others are unaffected', (t) => {
  const { queue, shape } = open({ delay: 0 });
  for (const id of [1, 2, 3]) queue.push(id, 0, shape, 0);
  t.is(queue.cancel(2), 'removed');
  t.is(queue.cancel(2), 'unknown');
  t.deepEqual(queue.next(0).started[0]?.members, [1, 3]);
  t.is(queue.cancel(1), 'in batch');
  t.is(queue.cancel(1), 'unknown');
  t.deepEqual(queue.finish(0), { completed: [3], cancelled: [1] });
  t.is(queue.cancel(3), 'unknown');
});

test('the last member that is cancelled says that nobody wants the batch', (t) => {
  const { queue, shape } = open({ delay: 0 });
  for (const id of [1, 2]) queue.push(id, 0, shape, 0);
  t.is(queue.next(0).started.length, 1);
  t.is(queue.cancel(2), 'in batch');
  t.is(queue.cancel(1), 'batch abandoned');
});

test("a lost device's members wait again, for another device; when it was the last one, everything has failed", (t) => {
  const { queue, shape } = open({ devices: 2, delay: 0 });
  for (let id = 0; id < 17; id++) queue.push(id, 0, shape, 0);
  t.is(queue.next(0).started.length, 2);
  t.deepEqual(queue.lose(1), { failed: [], cancelled: [], retried: [8, 9, 10, 11, 12, 13, 14, 15] });
  queue.finish(0);
  // Those of the lost device came before the one that waited.
  t.deepEqual(queue.next(1).started[0]?.members, [8, 9, 10, 11, 12, 13, 14, 15]);
  t.deepEqual(queue.lose(0), {
    failed: [8, 9, 10, 11, 12, 13, 14, 15, 16],
    cancelled: [],
    retried: [],
  });
  t.false(queue.push(20, 0, shape, 1));
  t.deepEqual(queue.next(1), { refused: [], started: [] });
});

test('a run whose second device is lost has failed, so that one input cannot take down all devices', (t) => {
  const { queue, shape } = open({ devices: 3, delay: 0 });
  queue.push(1, 0, shape, 0);
  t.is(queue.next(0).started[0]?.device, 0);
  t.deepEqual(queue.lose(0).retried, [1]);
  t.is(queue.next(1).started[0]?.device, 1);
  t.deepEqual(queue.lose(1), { failed: [1], cancelled: [], retried: [] });
});

test('a device that works again takes runs', (t) => {
  const { queue, shape } = open({ devices: 1, delay: 0 });
  queue.lose(0);
  t.false(queue.push(1, 0, shape, 0));
  queue.restore(0);
  t.true(queue.push(2, 0, shape, 1));
  t.deepEqual(queue.next(1).started[0]?.members, [2]);
});

test('a batch that is too large for a device is tried again in smaller ones, without its cancelled members', (t) => {
  const { queue, shape } = open({ delay: 0 });
  for (let id = 1; id <= 8; id++) queue.push(id, 0, shape, 0);
  t.is(queue.next(0).started[0]?.members.length, 8);
  queue.cancel(3);
  t.true(queue.shrink(shape, 8));
  t.deepEqual(queue.retry(0), { completed: [1, 2, 4, 5, 6, 7, 8], cancelled: [3] });
  t.deepEqual(queue.next(1).started[0]?.members, [1, 2, 4, 5]);
  t.false(queue.shrink(shape, 1), 'the smallest is kept');
});
