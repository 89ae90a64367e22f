import type { ExecutionContext } from 'ava';
import type { Program } from './lowPrecisionAddon.ts';

interface Damage {
  readonly rounds: number;
  /** Numbers that are put in place of others. */
  readonly odd: readonly bigint[];
  /** A random number from 0 to below `count`. */
  readonly pick: (count: number) => number;
}

/** `rounds` codes in which one to three numbers are changed, then every third beginning of the code. */
export function* damagedCodes(
  code: BigInt64Array,
  { rounds, odd, pick }: Damage,
): Generator<{ readonly code: BigInt64Array }> {
  for (let round = 0; round < rounds; round++) {
    const changed = BigInt64Array.from(code);
    for (let change = pick(3); change >= 0; change--) {
      const place = pick(changed.length);
      const near = (changed[place] ?? 0n) + BigInt(pick(5) - 2);
      changed[place] = pick(2) === 0 ? near : (odd[pick(odd.length)] ?? 0n);
    }
    yield { code: changed };
  }
  for (let end = 0; end < code.length; end += 3) yield { code: code.slice(0, end) };
}

/** Runs programs, each of which must end or be refused with `message`; returns how many were refused. */
export function countRefused(
  t: ExecutionContext,
  programs: Iterable<Partial<Program>>,
  run: (changed: Partial<Program>) => void,
  message: RegExp,
): number {
  let refused = 0;
  for (const changed of programs) {
    try {
      run(changed);
    } catch (error) {
      t.regex(error instanceof Error ? error.message : String(error), message);
      refused++;
    }
  }
  return refused;
}
