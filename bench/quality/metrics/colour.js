/**
 * How far the colours of a cut-out are from the true foreground, where the truth is soft (0.01 < α* < 0.99).
 * @param {{rgb: Uint8Array, alpha?: Uint8Array}} result straight colours; where `alpha` (one byte a pixel) is given,
 *   pixels that the result made wholly transparent are left out: they have no colour
 * @param {{alpha: Uint8Array, foreground: Uint8Array}} truth
 * @returns {{error: number, pixels: number}} mean over pixels and channels of α* · |difference|, colours in 0..1; NaN
 *   where no pixel counts
 */
export function colourError({ rgb, alpha }, truth) {
  let [sum, pixels] = [0, 0];
  for (let i = 0; i < truth.alpha.length; i++) {
    const a = truth.alpha[i];
    if (a < 3 || a > 252 || (alpha && alpha[i] === 0)) continue;
    pixels++;
    const at = i * 3;
    sum +=
      a *
      (Math.abs(rgb[at] - truth.foreground[at]) +
        Math.abs(rgb[at + 1] - truth.foreground[at + 1]) +
        Math.abs(rgb[at + 2] - truth.foreground[at + 2]));
  }
  return { error: pixels ? sum / (pixels * 3 * 255 * 255) : Number.NaN, pixels };
}

/**
 * What one sees on another background: mean over the band of |α F − α* F*| and of |α − α*|, the largest difference that
 * black and white grounds can show, colours in 0..1.
 */
export function visibleError({ rgb, alpha }, truth, band) {
  let [sum, pixels] = [0, 0];
  for (let i = 0; i < band.length; i++) {
    if (!band[i]) continue;
    pixels++;
    for (let c = i * 3; c < i * 3 + 3; c++) {
      const onBlack = alpha[i] * rgb[c] - truth.alpha[i] * truth.foreground[c];
      const onWhite = onBlack + 255 * (truth.alpha[i] - alpha[i]);
      sum += Math.max(Math.abs(onBlack), Math.abs(onWhite));
    }
  }
  return pixels ? sum / (pixels * 3 * 255 * 255) : 0;
}
