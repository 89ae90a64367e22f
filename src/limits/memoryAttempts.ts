import type { AttemptRules, Attempts } from './attempts.ts';

interface Count {
  failures: number;
  readonly until: number;
}

/** Sources that are remembered; the oldest is forgotten first. */
const most = 10_000;

/** Failed tries of one process. */
export class MemoryAttempts implements Attempts {
  readonly #rules: AttemptRules;
  readonly #now: () => number;
  readonly #counts = new Map<string, Count>();

  /** `now` gives Unix milliseconds. */
  constructor(rules: AttemptRules, now: () => number) {
    this.#rules = rules;
    this.#now = now;
  }

  async wait(source: string): Promise<number> {
    const { failures } = this.#rules;
    const count = this.#counts.get(source);
    const left = count ? count.until - this.#now() : 0;
    return failures > 0 && count && count.failures >= failures && left > 0 ? Math.ceil(left / 1000) : 0;
  }

  async failed(source: string): Promise<void> {
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
