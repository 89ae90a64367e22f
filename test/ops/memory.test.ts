import test from 'ava';
import { describeAllocator, memoryLimit } from '../../src/ops/memory.ts';

test('the limit is the one configured, else that of the control group, else a share of the machine', (t) => {
  t.deepEqual(memoryLimit(123, 50, 1000), { bytes: 123, from: 'CUTOUT_MEMORY_LIMIT' });
  t.deepEqual(memoryLimit('auto', 500, 1000), { bytes: 500, from: 'the control group' });
  // Both ways in which systems say that there is no limit.
  for (const none of [0, 2 ** 64]) t.is(memoryLimit('auto', none, 1000).bytes, 750);
});

test('the allocator is told by what the process was started with', (t) => {
  t.is(describeAllocator({}), undefined);
  t.is(describeAllocator({ MALLOC_ARENA_MAX: '2' }), 'glibc, 2 arenas');
  t.is(describeAllocator({ LD_PRELOAD: '/usr/lib/libjemalloc.so.2', MALLOC_ARENA_MAX: '2' }), 'jemalloc');
});
