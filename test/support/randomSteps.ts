import type { ExecutionContext } from 'ava';
import { random } from '../fixtures/random.ts';

/** Random choices of one run, from a seed that is logged, and counts of what happened. */
export function randomSteps(t: ExecutionContext) {
  const seed = Date.now() % 1e9;
  t.log(`seed ${seed}`);
  const next = random(seed);
  const below = (limit: number) => Math.floor(next() * limit);
  const pick = <T>(items: readonly T[]): T | undefined => items[below(items.length)];
  const seen = new Map<string, number>();
  const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
  return { seed, next, below, pick, seen, count };
}
