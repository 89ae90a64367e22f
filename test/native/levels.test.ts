import { readFileSync } from 'node:fs';
import test from 'ava';
import { onEveryLevel, openLevels } from './levels.ts';

/** Instruction sets that each x86-64 level requires beyond the previous one, as in /proc/cpuinfo (psABI, shortened). */
const NEEDED = {
  'x86-64-v3': ['avx', 'avx2', 'bmi1', 'bmi2', 'f16c', 'fma', 'abm', 'movbe', 'xsave'],
  'x86-64-v4': ['avx512f', 'avx512bw', 'avx512cd', 'avx512dq', 'avx512vl'],
} as const;

function flags(): ReadonlySet<string> {
  const line = /^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'));
  return new Set(line?.[1]?.trim().split(/\s+/));
}

const onX64 = process.arch === 'x64' && process.platform === 'linux' ? test : test.skip;

onX64('hot loops run on every level that this processor has, best first', (t) => {
  const has = flags();
  const v3 = NEEDED['x86-64-v3'].every((flag) => has.has(flag));
  const v4 = v3 && NEEDED['x86-64-v4'].every((flag) => has.has(flag));
  const wanted = [...(v4 ? ['x86-64-v4'] : []), ...(v3 ? ['x86-64-v3'] : []), 'baseline'];
  t.deepEqual(
    openLevels().map((addon) => addon.simdLevel()),
    wanted,
  );
});

test('a call on every level returns one result, writes to its arguments, and detects a difference', (t) => {
  const twice = onEveryLevel((addon) => ({
    level: () => (addon['simdLevel'] as () => string)(),
    fill: (bytes: Uint8Array) => {
      bytes.fill(7);
      return bytes.length;
    },
    fail: () => {
      throw new RangeError('no');
    },
  })) as { level(): string; fill(bytes: Uint8Array): number; fail(): void };
  const bytes = new Uint8Array(3);
  t.is(twice.fill(bytes), 3);
  t.deepEqual([...bytes], [7, 7, 7]);
  t.throws(() => twice.fail(), { instanceOf: RangeError, message: 'no' });
  if (openLevels().length > 1) {
    t.throws(() => twice.level(), { message: /level on .* differs from/ });
  } else {
    t.is(twice.level(), openLevels()[0]?.simdLevel() ?? '');
  }
});
