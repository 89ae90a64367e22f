import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';

/** A test addon: functions that may write to what they are given. */
type Addon = Record<string, unknown>;
type Call = (...given: unknown[]) => unknown;

export interface LevelledAddon {
  /** The version of the hot loops that runs (native/core/simd.h). */
  readonly simdLevel: () => string;
}

const require = createRequire(import.meta.url);
const open = (suffix: string) =>
  require(`../../../native/Release/cutout_test${suffix}.node`) as Addon & LevelledAddon;

/**
 * The test addon, once per level of this processor, best first. A forced level ignores the processor's features, so
 * only those below the best are opened.
 */
export function openLevels(): readonly (Addon & LevelledAddon)[] {
  const best = open('');
  const lower = { 'x86-64-v4': ['_v3', '_v1'], 'x86-64-v3': ['_v1'] }[best.simdLevel()] ?? [];
  return [best, ...lower.map(open)];
}

/** A copy that shares no memory; functions are kept. */
function copied(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return structuredClone(value);
  if (Array.isArray(value)) return value.map(copied);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, copied(part)]));
  }
  return value;
}

/** Copies what a call wrote to a copy back into the original. */
function bringBack(from: unknown, to: unknown): void {
  if (ArrayBuffer.isView(from) && ArrayBuffer.isView(to)) {
    new Uint8Array(to.buffer, to.byteOffset, to.byteLength).set(
      new Uint8Array(from.buffer, from.byteOffset, from.byteLength),
    );
  } else if (typeof from === 'object' && from !== null && typeof to === 'object' && to !== null) {
    for (const [key, part] of Object.entries(from)) bringBack(part, Reflect.get(to, key));
  }
}

interface Outcome {
  readonly given: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

function outcomeOf(call: Call, given: readonly unknown[]): Outcome {
  const own = copied(given);
  try {
    return { given: own, result: call(...(own as unknown[])) };
  } catch (error) {
    return { given: own, error };
  }
}

/** Buffers are compared as bytes, so that NaN and signed zeros count; everything else by value. */
function same(a: unknown, b: unknown): boolean {
  if (ArrayBuffer.isView(a) && ArrayBuffer.isView(b)) {
    return Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(
      Buffer.from(b.buffer, b.byteOffset, b.byteLength),
    );
  }
  if (a instanceof Error && b instanceof Error) return a.message === b.message;
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    const [keys, others] = [Object.keys(a), Object.keys(b)];
    return (
      isDeepStrictEqual(keys, others) && keys.every((key) => same(Reflect.get(a, key), Reflect.get(b, key)))
    );
  }
  return Object.is(a, b);
}

/** Whether a call runs on the best level only: that of an oracle, which has one version. */
type IsForBest = (name: string, given: readonly unknown[]) => boolean;

function onAll(name: string, calls: readonly Call[], levels: readonly string[], isForBest: IsForBest): Call {
  return (...given) => {
    const asked = isForBest(name, given) ? calls.slice(0, 1) : calls;
    const [first, ...others] = asked.map((call) => outcomeOf(call, given));
    if (!first) throw new Error('no level');
    for (const [at, other] of others.entries()) {
      if (!same(first, other)) throw new Error(`${name} on ${levels[at + 1]} differs from ${levels[0]}`);
    }
    bringBack(first.given, given);
    if (first.error) throw first.error;
    return first.result;
  };
}

/**
 * An addon whose calls run on every level, with the same arguments, and throw if any gives other bytes:
 * a kernel's test covers every version that ships.
 */
export function onEveryLevel(
  of: (addon: Addon) => object = (addon) => addon,
  isForBest: IsForBest = () => false,
): object {
  const all = openLevels();
  const levels = all.map((addon) => addon.simdLevel());
  const parts = all.map((addon) => of(addon) as Record<string, Call>);
  return Object.fromEntries(
    Object.keys(parts[0] ?? {}).map((name) => [
      name,
      onAll(
        name,
        parts.map((part) => part[name] as Call),
        levels,
        isForBest,
      ),
    ]),
  );
}
