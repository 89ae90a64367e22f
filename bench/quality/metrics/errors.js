/**
 * Distances of a matte from its truth. SAD and MSE of the band are the usual ones of the matting literature: sum of
 * absolute differences / 1000, mean of squares; alpha in 0..1.
 * @returns {{sad: number, mae: number, mse: number, bandSad: number, bandMae: number, bandMse: number, gross: number}}
 *   `gross`: absolute error outside the band over the truth's area. That is no question of edges.
 */
export function errors(matte, truth, band) {
  const all = new Float64Array(256);
  const inside = new Float64Array(256);
  let area = 0;
  for (let i = 0; i < matte.length; i++) {
    const apart = Math.abs(matte[i] - truth[i]);
    all[apart]++;
    if (band[i]) inside[apart]++;
    area += truth[i];
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
    gross: area > 0 ? ((whole.sad - part.sad) * 1000 * 255) / area : 0,
  };
}
