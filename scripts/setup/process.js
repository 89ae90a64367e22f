import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const JEMALLOC = [
  '/usr/lib/x86_64-linux-gnu/libjemalloc.so.2',
  '/usr/lib/aarch64-linux-gnu/libjemalloc.so.2',
];

/**
 * Environment a server process must have before it starts; what the owner has set wins.
 * Memory: glibc keeps freed pictures in one arena a thread, so jemalloc is used where it is installed and
 * the number of arenas is limited elsewhere. libuv's pool decodes and encodes, one thread a core and some
 * for file system and name look-ups.
 */
export function processSettings() {
  const jemalloc = JEMALLOC.find((file) => existsSync(file));
  return {
    ...(jemalloc ? { LD_PRELOAD: jemalloc } : { MALLOC_ARENA_MAX: '2' }),
    UV_THREADPOOL_SIZE: String(Math.max(4, availableParallelism() + 2)),
  };
}
