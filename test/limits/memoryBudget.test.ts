import test from 'ava';
import { largestBody } from '../../src/http/middleware/receiveBody.ts';
import { MemoryBudget, type MemoryReservation, roomForBody } from '../../src/limits/memoryBudget.ts';

const upload = 20e6;

/** Room for 50 uploads, and for work. */
function open(): MemoryBudget {
  const memory = new MemoryBudget();
  memory.bound({ room: 2000e6, largestWork: 600e6 });
  return memory;
}

/** As many uploads as the account is allowed. */
function fill(memory: MemoryBudget, account: string): MemoryReservation[] {
  const found: MemoryReservation[] = [];
  for (;;) {
    const reservation = memory.reserveUpload(account, upload);
    if (!reservation) return found;
    found.push(reservation);
  }
}

test('one account fills three quarters with uploads that never end; others are still admitted', (t) => {
  const memory = open();
  t.is(fill(memory, 'slow').length, 37);
  t.is(fill(memory, 'b').length, 9, 'three quarters of what the first left');
  t.is(fill(memory, 'c').length, 3);
  t.is(fill(memory, 'slow').length, 0);
});

test('an account above its share shrinks as its uploads end', (t) => {
  const memory = open();
  const first = fill(memory, 'a');
  let others = fill(memory, 'b').length;
  for (const reservation of first.slice(0, 20)) {
    reservation.release();
    others += fill(memory, 'b').length;
  }
  t.is(others, 24);
  t.is(fill(memory, 'a').length, 2, 'it had 17 left');
});

test('an account that holds nothing gets whatever is free, and no account more than that', (t) => {
  const memory = open();
  const large = memory.reserveUpload('a', 990e6);
  t.is(memory.reserveUpload('b', 11e6), undefined);
  t.not(memory.reserveUpload('b', 10e6), undefined);
  t.is(memory.reserveUpload('b', 1), undefined);
  large?.release();
  large?.release();
  t.is(memory.stats.held, 10e6);
});

test('the result of an upload counts for its account; after its release nothing is counted', (t) => {
  const memory = open();
  const [first, ...rest] = fill(memory, 'a');
  first?.resize(0);
  t.not(memory.reserveUpload('a', upload), undefined);
  first?.resize(900e6);
  t.is(memory.reserveUpload('a', 1), undefined);
  first?.release();
  for (const reservation of rest) reservation.release();
  t.is(memory.stats.held, upload);
  t.is(fill(memory, 'a').length, 36);
});

test('growth is checked as an upload is, for its account and overall; a refusal changes nothing', (t) => {
  const memory = open();
  const growing = memory.reserveUpload('a', 0);
  let granted = 0;
  while (growing?.grow(1e6)) granted += 1e6;
  t.is(granted, 750e6);
  t.is(memory.stats.held, 750e6);
  const other = memory.reserveUpload('b', 100e6);
  t.true(other?.grow(50e6));
  t.false(other?.grow(100e6));
  growing?.resize(10e6);
  t.true(other?.grow(100e6));
  growing?.release();
  other?.release();
  t.is(memory.stats.held, 0);
});

test('before `bound` there is no limit', (t) => {
  const memory = new MemoryBudget();
  t.not(memory.reserveUpload('a', 1e12), undefined);
  t.not(memory.reserveUpload('a', 1e12), undefined);
});

test('the largest body grows to its end if it fits, and work continues meanwhile', (t) => {
  const memory = new MemoryBudget();
  memory.bound({ room: roomForBody(largestBody), largestWork: 1e9, largestBody });
  const reservation = memory.reserveUpload('a', 1000);
  for (let bytes = 1000; bytes < largestBody; bytes += 1e6)
    t.true(reservation?.grow(Math.min(1e6, largestBody - bytes)) ?? false);
  t.truthy(memory.reserveJob(50e6));
});

test('after a release nothing is reserved again', (t) => {
  const memory = open();
  const reservation = memory.reserveUpload('a', upload);
  reservation?.release();
  reservation?.resize(50e6);
  t.false(reservation?.grow(1) ?? true);
  reservation?.release();
  t.is(memory.stats.held, 0);
});

test('what is retained stays counted after the release, and growth does not', (t) => {
  const memory = open();
  const reservation = memory.reserveUpload('a', upload);
  const first = reservation?.retain();
  const second = reservation?.retain();
  reservation?.release();
  reservation?.release();
  t.is(memory.stats.held, upload);
  t.false(reservation?.grow(1));
  reservation?.resize(1);
  t.is(memory.stats.held, upload);
  first?.();
  first?.();
  t.is(memory.stats.held, upload);
  second?.();
  t.is(memory.stats.held, 0);
  t.is(fill(memory, 'a').length, 37, 'as if the account had held nothing');
});
