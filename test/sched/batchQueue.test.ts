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

const open = (delay = 5) => new Queue(buckets, delay, second);

test('an idle device waits for more runs, at most as long as the delay', (t) => {
  const queue = open();
  t.true(queue.push(1, 100));
  t.deepEqual(queue.next(100), { refused: [], wake: 105 });
  queue.push(2, 104);
  t.deepEqual(queue.next(104), { refused: [], wake: 105 });
  t.deepEqual(queue.next(105), { refused: [], bucket: 1, members: [1, 2] });
  t.deepEqual(queue.finish(), { runs: [1, 2], cancelled: [] });
});

test('a full batch starts at once, the rest waits for the device', (t) => {
  const queue = open();
  for (let id = 0; id < 9; id++) queue.push(id, 0);
  t.deepEqual(queue.next(0), { refused: [], bucket: 3, members: [0, 1, 2, 3, 4, 5, 6, 7] });
  queue.finish();
  t.deepEqual(queue.next(10), { refused: [], bucket: 0, members: [8] });
});

test('a batch has the number of members with which the device computes the most images in a time', (t) => {
  // 5 / 10 is less than 4 / 6; 7 / 10 is more; 3 / 6 is no more than 2 / 4.
  for (const [waiting, members, bucket] of [
    [3, 2, 1],
    [5, 4, 2],
    [7, 7, 3],
  ] as const) {
    const queue = open();
    for (let id = 0; id < waiting; id++) queue.push(id, 0);
    const batch = queue.next(5);
    t.is(batch.members?.length, members);
    t.is(batch.bucket, bucket);
  }
});

test('a device that gains nothing from batches runs one image at a time', (t) => {
  const queue = new Queue(
    [
      [1, 10],
      [2, 20],
      [4, 41],
    ],
    0,
    second,
  );
  for (let id = 0; id < 4; id++) queue.push(id, 0);
  t.deepEqual(queue.next(0), { refused: [], bucket: 0, members: [0] });
});

test('a run that waiting would make late starts before the delay has passed', (t) => {
  const queue = open();
  queue.push(1, 0, 5);
  t.deepEqual(queue.next(0), { refused: [], wake: 2 });
  t.deepEqual(queue.next(2), { refused: [], bucket: 0, members: [1] });
});

test('a run that the device cannot finish in time is refused, also because of the batch before it', (t) => {
  const queue = open();
  queue.push(1, 0, 2);
  t.deepEqual(queue.next(0), { refused: [1] });
  t.is(queue.cancel(1), 'unknown');
  for (let id = 2; id < 10; id++) queue.push(id, 0, 11);
  // The device is free at 10, a run alone ends at 13.
  queue.push(20, 0, 12);
  queue.push(21, 0, 13);
  t.deepEqual(queue.next(0), { refused: [20], bucket: 3, members: [2, 3, 4, 5, 6, 7, 8, 9] });
  // The batch takes longer than expected.
  queue.finish();
  t.deepEqual(queue.next(11), { refused: [21] });
});

test('a run that only a small batch can finish in time does not hold up a full one', (t) => {
  const queue = open();
  queue.push(1, 0, 4);
  for (let id = 2; id < 10; id++) queue.push(id, 0, 100);
  t.deepEqual(queue.next(0), { refused: [1], bucket: 3, members: [2, 3, 4, 5, 6, 7, 8, 9] });
});

test('the earliest deadline is first; a run without one ages', (t) => {
  const queue = new Queue([[1, 1]], 0, 50);
  queue.push(1, 0);
  queue.push(2, 0, 60);
  queue.push(3, 1, 40);
  const order = [];
  for (let now = 1; now < 4; now++) {
    order.push(...(queue.next(now).members ?? []));
    queue.finish();
  }
  t.deepEqual(order, [3, 1, 2]);
});

test('a cancelled run leaves the queue, or its batch as that ends; the others are unaffected', (t) => {
  const queue = open(0);
  for (const id of [1, 2, 3]) queue.push(id, 0);
  t.is(queue.cancel(2), 'removed');
  t.is(queue.cancel(2), 'unknown');
  t.deepEqual(queue.next(0).members, [1, 3]);
  t.is(queue.cancel(1), 'in batch');
  t.is(queue.cancel(1), 'unknown');
  t.deepEqual(queue.finish(), { runs: [3], cancelled: [1] });
  t.is(queue.cancel(3), 'unknown');
});

test('the last member that is cancelled says that nobody wants the batch', (t) => {
  const queue = open(0);
  for (const id of [1, 2]) queue.push(id, 0);
  t.deepEqual(queue.next(0).members, [1, 2]);
  t.is(queue.cancel(2), 'in batch');
  t.is(queue.cancel(1), 'batch abandoned');
});

test('a lost device hands back its members and those that wait, and takes runs when it works again', (t) => {
  const queue = open(0);
  for (let id = 0; id < 10; id++) queue.push(id, 0);
  t.is(queue.next(0).members?.length, 8);
  queue.cancel(3);
  t.deepEqual(queue.lose(), { runs: [0, 1, 2, 4, 5, 6, 7, 8, 9], cancelled: [3] });
  t.false(queue.push(20, 1));
  t.deepEqual(queue.next(1), { refused: [] });
  queue.restore();
  t.true(queue.push(21, 2));
  t.deepEqual(queue.next(2).members, [21]);
});

test('a batch that is too large for a device is tried again in smaller ones, without its cancelled members', (t) => {
  const queue = open(0);
  for (let id = 1; id <= 8; id++) queue.push(id, 0);
  t.is(queue.next(0).members?.length, 8);
  queue.cancel(3);
  t.true(queue.shrink(8));
  t.deepEqual(queue.retry(), [3]);
  t.deepEqual(queue.next(1).members, [1, 2, 4, 5]);
  t.false(queue.shrink(1), 'the smallest is kept');
});
