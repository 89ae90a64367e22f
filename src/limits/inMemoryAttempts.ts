import type { AttemptRules, Attempts } from './attempts.ts';
import { systemClock } from './clock.ts';

interface Count {
  failures: number;
  readonly until: number;
}

/** Sources that are remembered; the oldest is forgotten first. */
const maxSources = 10_000;

/** Failed attempts, counted within this process. */
export class InMemoryAttempts implements Attempts {
  readonly #rules: AttemptRules;
  readonly #elapsed: () => number;
  readonly #counts = new Map<string, Count>();

  /** `elapsed` is a monotonic clock in milliseconds. */
  constructor(rules: AttemptRules, elapsed: () => number = systemClock.elapsed) {
    this.#rules = rules;
    this.#elapsed = elapsed;
  }

  async wait(source: string): Promise<number> {
    return this.#wait(source);
  }

  async failed(source: string): Promise<number> {
    const wait = this.#wait(source);
    if (wait === 0 && this.#rules.failures > 0) this.#count(source);
    return wait;
  }

  #wait(source: string): number {
    const { failures } = this.#rules;
    const count = this.#counts.get(source);
    const left = count ? count.until - this.#elapsed() : 0;
    return failures > 0 && count && count.failures >= failures && left > 0 ? Math.ceil(left / 1000) : 0;
  }

  #count(source: string): void {
    const now = this.#elapsed();
    const count = this.#counts.get(source);
    if (count && count.until > now) {
      count.failures++;
      return;
    }
    this.#counts.delete(source);
    if (this.#counts.size >= maxSources) {
      const oldest = this.#counts.keys().next();
      if (!oldest.done) this.#counts.delete(oldest.value);
    }
    this.#counts.set(source, { failures: 1, until: now + this.#rules.windowSeconds * 1000 });
  }
}
