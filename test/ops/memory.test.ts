import test from 'ava';
import { describeAllocator, memoryLimit } from '../../src/ops/memory.ts';

test("the limit is the configured one, else the control group's, else a share of the machine's memory", (t) => {
  t.deepEqual(memoryLimit(123, 50, 1000), { bytes: 123, from: 'CUTOUT_MEMORY_LIMIT' });
  t.deepEqual(memoryLimit('auto', 500, 1000), { bytes: 500, from: 'the control group' });
  // The two ways in which systems express that there is no limit.
  for (const none of [0, 2 ** 64]) t.is(memoryLimit('auto', none, 1000).bytes, 750);
});

test('the allocator is derived from the environment the process was started with', (t) => {
  t.is(describeAllocator({}), undefined);
  t.is(describeAllocator({ MALLOC_ARENA_MAX: '2' }), 'glibc, 2 arenas');
  t.is(describeAllocator({ LD_PRELOAD: '/usr/lib/libjemalloc.so.2', MALLOC_ARENA_MAX: '2' }), 'jemalloc');
});
