/** Truth is a region here: its pixels above 128. A matte is a region at each of 256 thresholds, α ≥ t / 255. */
const BETA2 = 0.3;

/** How many pixels of the truth's region and of its outside have each value of the matte. */
function histograms(matte, truth) {
  const [inside, outside] = [new Float64Array(256), new Float64Array(256)];
  for (let i = 0; i < matte.length; i++) (truth[i] > 128 ? inside : outside)[matte[i]]++;
  return { inside, outside };
}

const fOf = (hit, found, there) => {
  if (hit === 0) return 0;
  const [precision, recall] = [hit / found, hit / there];
  return ((1 + BETA2) * precision * recall) / (BETA2 * precision + recall);
};

/**
 * E of one binary map against another: ((2ab / (a² + b²) + 1)² / 4 of mean-removed values, summed over pixels / (N − 1).
 * All pixels of one of the four kinds have one value.
 */
function alignment(hit, found, there, pixels) {
  if (there === 0) return (pixels - found) / (pixels - 1 || 1);
  if (there === pixels) return found / (pixels - 1 || 1);
  const [meanFound, meanThere] = [found / pixels, there / pixels];
  const kinds = [
    [hit, 1, 1],
    [found - hit, 1, 0],
    [there - hit, 0, 1],
    [pixels - found - there + hit, 0, 0],
  ];
  let sum = 0;
  for (const [count, p, g] of kinds) {
    const [a, b] = [p - meanFound, g - meanThere];
    sum += count * (((2 * a * b) / (a * a + b * b + Number.EPSILON) + 1) ** 2 / 4);
  }
  return sum / (pixels - 1 || 1);
}

/**
 * F (β² = .3) and E at every threshold.
 * @returns {{curve: Float64Array, maxF: number, adaptiveF: number, meanE: number}} `curve`: F at thresholds 0..255; the
 *   figure of a set is the maximum of the mean curve, not the mean of `maxF`
 */
export function regionScores(matte, truth) {
  const { inside, outside } = histograms(matte, truth);
  const pixels = matte.length;
  const there = inside.reduce((sum, n) => sum + n, 0);
  const curve = new Float64Array(256);
  const hits = new Float64Array(256);
  const founds = new Float64Array(256);
  let [hit, found, total, meanE] = [0, 0, 0, 0];
  for (let t = 255; t >= 0; t--) {
    hit += inside[t];
    found += inside[t] + outside[t];
    total += t * (inside[t] + outside[t]);
    hits[t] = hit;
    founds[t] = found;
    curve[t] = fOf(hit, found, there);
    meanE += alignment(hit, found, there, pixels) / 256;
  }
  const adaptive = Math.min(255, Math.ceil((2 * total) / pixels));
  return {
    curve,
    maxF: Math.max(...curve),
    adaptiveF: fOf(hits[adaptive], founds[adaptive], there),
    meanE,
  };
}
