import test from 'ava';
import { Queue } from './schedAddon.ts';

/** Fixed cost 2, 1 for each image. */
const buckets = [
  [1, 3],
  [2, 4],
  [4, 6],
  [8, 10],
] as const;

const open = (delay = 5) => new Queue(buckets, delay);

test('an idle device waits for more runs, at most as long as the delay', (t) => {
  const queue = open();
  t.true(queue.push(1, 100));
  t.deepEqual(queue.next(100), { wake: 105 });
  queue.push(2, 104);
  t.deepEqual(queue.next(104), { wake: 105 });
  t.deepEqual(queue.next(105), { bucket: 1, members: [1, 2] });
  t.deepEqual(queue.finish(), { runs: [1, 2], cancelled: [] });
});

test('a full batch starts at once, the rest waits for the device', (t) => {
  const queue = open();
  for (let id = 0; id < 9; id++) queue.push(id, 0);
  t.deepEqual(queue.next(0), { bucket: 3, members: [0, 1, 2, 3, 4, 5, 6, 7] });
  queue.finish();
  t.deepEqual(queue.next(10), { bucket: 0, members: [8] });
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
  );
  for (let id = 0; id < 4; id++) queue.push(id, 0);
  t.deepEqual(queue.next(0), { bucket: 0, members: [0] });
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
  t.deepEqual(queue.next(1), {});
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
