const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

/**
 * Quantile `q` in 0..1 of the values, interpolated between the two nearest ranks (R's type 7, NumPy's default).
 * NaN without values.
 */
export function quantile(values: readonly number[], q: number): number {
  const sorted = ascending(values);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

export const mean = (values: readonly number[]): number => sum(values) / values.length;

/** Slope of the least-squares line through points (x, y), in y per x. 0 if all x are equal. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const centre = mean(points.map(([x]) => x));
  const spread = sum(points.map(([x]) => (x - centre) ** 2));
  return spread === 0 ? 0 : sum(points.map(([x, y]) => (x - centre) * y)) / spread;
}

/** How often each word occurs, most frequent first. */
export function tally(words: readonly string[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return Object.fromEntries([...counts].sort((a, b) => b[1] - a[1]));
}
