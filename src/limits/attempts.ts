import { isIPv6 } from 'node:net';

export interface AttemptRules {
  /** Failures from one source in a window before it has to wait; 0 = no limit. */
  readonly failures: number;
  readonly windowSeconds: number;
}

/**
 * Brakes guessing: counts failed tries of a source (an address, an account) in fixed windows and says how long it
 * has to wait. What succeeds is not counted. Neither method ever rejects.
 *
 * Any number of tries may be under way at once. So a guard asks when it knows whether the try was right, and before
 * anybody else does: `failed` of a wrong one, `wait` of a right one, both in one step. Where either gives more than 0, the
 * guesser learns that alone: of all tries no more are answered than `failures` wrong ones.
 */
export interface Attempts {
  /** Whole seconds to wait before the next try; 0: go on. */
  wait(source: string): Promise<number>;
  /** Counts a failed try; `wait` as it was before, in the same step: one that had to wait is not counted. */
  failed(source: string): Promise<number>;
}

/** What a guard asks when it knows whether a try was right: seconds to wait, 0: say so. */
export const tried = (attempts: Attempts, source: string, right: boolean): Promise<number> =>
  right ? attempts.wait(source) : attempts.failed(source);

/** An IPv6 customer has a whole /64 to try from. */
export function sourceOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('%')[0]?.split('::') ?? [];
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0'), ...right];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}
