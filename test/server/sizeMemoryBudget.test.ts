import test from 'ava';
import type { Engine } from '../../src/engine/engine.ts';
import { MemoryBudget } from '../../src/limits/memoryBudget.ts';
import { createLogger } from '../../src/ops/log.ts';
import { countedShare } from '../../src/ops/memory.ts';
import { sizeMemoryBudget } from '../../src/server/openLimits.ts';

const limit = 20e9;

/** Bytes that the limit leaves for requests. */
function roomOf(network: { width: number; height: number }, workers: number, keptBytes: number): number {
  const memory = new MemoryBudget();
  const engine = { stats: () => ({ keptBytes }) } as Engine;
  const opened = { engine, threads: { workers }, network };
  sizeMemoryBudget(
    { limits: { memory: limit }, cutout: { resultTtlSeconds: 0 }, redis: {} } as never,
    memory,
    {
      opened: opened as never,
      selects: false,
      limits: { maxPixels: 50e6 } as never,
      logger: createLogger('silent', { write: () => {} }),
    },
  );
  return memory.stats.room;
}

test('each worker is given what refinement takes of an image that is uncertain everywhere', (t) => {
  const kept = 67e6;
  const small = roomOf({ width: 32, height: 32 }, 1, kept);
  // The resident memory of this process changes meanwhile, but not by that much.
  const near = (a: number, b: number) => t.true(Math.abs(a - b) < 40e6, `${a / 1e6} ${b / 1e6}`);
  near(small, countedShare * limit - process.memoryUsage.rss());
  near(roomOf({ width: 32, height: 32 }, 4, kept), small - 3 * kept);
  const megapixels = 1024 * 1024;
  near(roomOf({ width: 1024, height: 1024 }, 1, kept), small - (150 * megapixels - kept));
  near(roomOf({ width: 1024, height: 1024 }, 4, kept), small - (4 * 150 * megapixels - kept));
});
