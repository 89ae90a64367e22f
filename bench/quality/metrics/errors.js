/**
 * Distances of a matte from its truth. SAD and MSE of the band are the usual ones of the matting literature: sum of
 * absolute differences / 1000, mean of squares; alpha in 0..1.
 * @returns {{sad: number, mae: number, mse: number, bandSad: number, bandMae: number, bandMse: number, gross: number}}
 *   `gross`: see grossError
 */
export function errors(matte, truth, band, size) {
  const all = new Float64Array(256);
  const inside = new Float64Array(256);
  for (let i = 0; i < matte.length; i++) {
    const apart = Math.abs(matte[i] - truth[i]);
    all[apart]++;
    if (band[i]) inside[apart]++;
  }
  const sums = (counts) => {
    let [n, absolute, squares] = [0, 0, 0];
    for (let d = 0; d < 256; d++) {
      n += counts[d];
      absolute += counts[d] * (d / 255);
      squares += counts[d] * (d / 255) ** 2;
    }
    return { sad: absolute / 1000, mae: n ? absolute / n : 0, mse: n ? squares / n : 0 };
  };
  const [whole, part] = [sums(all), sums(inside)];
  return {
    ...whole,
    bandSad: part.sad,
    bandMae: part.mae,
    bandMse: part.mse,
    gross: grossError(matte, truth, size),
  };
}

/**
 * What no question of edges explains: how far the means over blocks of 1.2 % of the diagonal (at least 16 pixels) are
 * apart, summed, over the truth's area. A soft matte keeps those means; one that fills gaps or misses parts does not.
 */
export function grossError(matte, truth, { width, height }) {
  const side = Math.max(16, Math.round(0.012 * Math.hypot(width, height)));
  const columns = Math.ceil(width / side);
  const apart = new Float64Array(columns * Math.ceil(height / side));
  let area = 0;
  for (let y = 0, i = 0; y < height; y++) {
    const row = Math.floor(y / side) * columns;
    for (let x = 0; x < width; x++, i++) {
      apart[row + Math.floor(x / side)] += matte[i] - truth[i];
      area += truth[i];
    }
  }
  return area > 0 ? apart.reduce((sum, value) => sum + Math.abs(value), 0) / area : 0;
}
