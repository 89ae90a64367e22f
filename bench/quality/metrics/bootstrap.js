import { random } from '../generate/random.js';

const ROUNDS = 2000;

export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * 95 % interval of a statistic of a set of images, by drawing images with replacement.
 * @template T @param {T[]} items @param {(items: T[]) => number} statistic
 * @returns {[number, number]} 2.5 and 97.5 percentile; the same for the same items
 */
export function interval(items, statistic, seed = 1) {
  const next = random(seed);
  const found = new Float64Array(ROUNDS);
  const drawn = new Array(items.length);
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < items.length; i++) drawn[i] = items[Math.floor(next() * items.length)];
    found[round] = statistic(drawn);
  }
  found.sort();
  return [found[Math.floor(0.025 * (ROUNDS - 1))], found[Math.ceil(0.975 * (ROUNDS - 1))]];
}
