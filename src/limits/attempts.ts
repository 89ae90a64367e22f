import { isIPv6 } from 'node:net';

export interface AttemptRules {
  /** Failures from one source in a window before it has to wait; 0 = no limit. */
  readonly failures: number;
  readonly windowSeconds: number;
}

interface Count {
  failures: number;
  readonly until: number;
}

/** Sources that are remembered; the oldest is forgotten first. */
const most = 10_000;

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

/**
 * Brakes guessing: counts failed tries of a source (an address, an account) in fixed windows and says how long it
 * has to wait. What succeeds is not counted.
 */
export class Attempts {
  readonly #rules: AttemptRules;
  readonly #now: () => number;
  readonly #counts = new Map<string, Count>();

  /** `now` gives Unix milliseconds. */
  constructor(rules: AttemptRules, now: () => number) {
    this.#rules = rules;
    this.#now = now;
  }

  /** Whole seconds to wait before the next try; 0: go on. */
  wait(source: string): number {
    const { failures } = this.#rules;
    const count = this.#counts.get(source);
    const left = count ? count.until - this.#now() : 0;
    return failures > 0 && count && count.failures >= failures && left > 0 ? Math.ceil(left / 1000) : 0;
  }

  failed(source: string): void {
    const now = this.#now();
    const count = this.#counts.get(source);
    if (count && count.until > now) {
      count.failures++;
      return;
    }
    this.#counts.delete(source);
    if (this.#counts.size >= most) {
      const oldest = this.#counts.keys().next();
      if (!oldest.done) this.#counts.delete(oldest.value);
    }
    this.#counts.set(source, { failures: 1, until: now + this.#rules.windowSeconds * 1000 });
  }
}
