/**
 * Uniform numbers in [0, 1) from a 32-bit seed; the same on every machine.
 * @param {number} seed @returns {() => number}
 */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** A seed that belongs to a word and a number. */
export function seedOf(word, number) {
  let state = (number ^ 0x811c9dc5) >>> 0;
  for (const letter of word) state = Math.imul(state ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  return Math.floor(random(state)() * 2 ** 32);
}

/** Helpers over one stream of numbers. */
export function dice(seed) {
  const next = random(seed);
  return {
    next,
    /** Uniform in low..high. */
    between: (low, high) => low + (high - low) * next(),
    /** About normal, mean 0, deviation 1, within ±3.5. */
    normal: () => (next() + next() + next() + next() + next() + next() - 3) * Math.SQRT2,
    pick: (values) => values[Math.floor(next() * values.length)],
    /** A seed for something that draws its own numbers. */
    seed: () => Math.floor(next() * 2 ** 32),
  };
}
