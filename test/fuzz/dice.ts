import { random } from '../fixtures/random.ts';

/** Choices that a seed makes again. */
export class Dice {
  readonly #next: () => number;
  constructor(of: number) {
    this.#next = random(of);
  }
  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }
  oneIn(n: number): boolean {
    return this.below(n) === 0;
  }
  of<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }
}
