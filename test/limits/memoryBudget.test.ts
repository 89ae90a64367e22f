import test from 'ava';
import { largestBody } from '../../src/http/middleware/receiveBody.ts';
import { type Hold, MemoryBudget, roomFor } from '../../src/limits/memoryBudget.ts';

const upload = 20e6;

/** Room for 50 uploads, and for work. */
function open(): MemoryBudget {
  const memory = new MemoryBudget();
  memory.bound({ room: 2000e6, largestWork: 600e6 });
  return memory;
}

/** As many uploads as an account gets. */
function fill(memory: MemoryBudget, account: string): Hold[] {
  const found: Hold[] = [];
  for (;;) {
    const hold = memory.hold(account, upload);
    if (!hold) return found;
    found.push(hold);
  }
}

test('an account alone fills three quarters with uploads that never end; others are let in all the same', (t) => {
  const memory = open();
  t.is(fill(memory, 'slow').length, 37);
  t.is(fill(memory, 'b').length, 9, 'three quarters of what the first left');
  t.is(fill(memory, 'c').length, 3);
  t.is(fill(memory, 'slow').length, 0);
});

test('who has more than its part gives way as its uploads end', (t) => {
  const memory = open();
  const first = fill(memory, 'a');
  let others = fill(memory, 'b').length;
  for (const hold of first.slice(0, 20)) {
    hold.release();
    others += fill(memory, 'b').length;
  }
  t.is(others, 24);
  t.is(fill(memory, 'a').length, 2, 'it had 17 left');
});

test('who holds nothing gets whatever is free, and nobody more than that', (t) => {
  const memory = open();
  const large = memory.hold('a', 990e6);
  t.is(memory.hold('b', 11e6), undefined);
  t.not(memory.hold('b', 10e6), undefined);
  t.is(memory.hold('b', 1), undefined);
  large?.release();
  large?.release();
  t.is(memory.stats.held, 10e6);
});

test('what an upload becomes counts for its account; released, nothing of it is left', (t) => {
  const memory = open();
  const [first, ...rest] = fill(memory, 'a');
  first?.resize(0);
  t.not(memory.hold('a', upload), undefined);
  first?.resize(900e6);
  t.is(memory.hold('a', 1), undefined);
  first?.release();
  for (const hold of rest) hold.release();
  t.is(memory.stats.held, upload);
  t.is(fill(memory, 'a').length, 36);
});

test('what grows asks as an upload does, for its account and for all; refused, nothing changes', (t) => {
  const memory = open();
  const growing = memory.hold('a', 0);
  let granted = 0;
  while (growing?.grow(1e6)) granted += 1e6;
  t.is(granted, 750e6);
  t.is(memory.stats.held, 750e6);
  t.is(memory.stats.refused, 1);
  const other = memory.hold('b', 100e6);
  t.true(other?.grow(50e6));
  t.false(other?.grow(100e6));
  growing?.resize(10e6);
  t.true(other?.grow(100e6));
  growing?.release();
  other?.release();
  t.is(memory.stats.held, 0);
});

test('until it is bound there is room for all', (t) => {
  const memory = new MemoryBudget();
  t.not(memory.hold('a', 1e12), undefined);
  t.not(memory.hold('a', 1e12), undefined);
});

test('with room for it the largest body grows to its end, and work goes on beside', (t) => {
  const memory = new MemoryBudget();
  memory.bound({ room: roomFor(largestBody), largestWork: 1e9, largestBody });
  const hold = memory.hold('a', 1000);
  for (let bytes = 1000; bytes < largestBody; bytes += 1e6)
    t.true(hold?.grow(Math.min(1e6, largestBody - bytes)) ?? false);
  t.truthy(memory.work(50e6));
});

test('what was given back stays given back, whatever comes after it', (t) => {
  const memory = open();
  const hold = memory.hold('a', upload);
  hold?.release();
  hold?.resize(50e6);
  t.false(hold?.grow(1) ?? true);
  hold?.release();
  t.is(memory.stats.held, 0);
});
