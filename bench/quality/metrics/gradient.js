const SIGMA = 1.4;
const HALF = 4; // ceil(σ √(−2 ln(√(2π) σ ε))), ε = 0.01: beyond, the Gaussian is below ε
const TAPS = 2 * HALF + 1;

/** Gaussian and its derivative, each of unit length, so that their product, the 9 × 9 kernel, is of unit length. */
const [SMOOTH, SLOPE] = (() => {
  const gauss = Array.from({ length: TAPS }, (_, i) => Math.exp(-((i - HALF) ** 2) / (2 * SIGMA * SIGMA)));
  const slope = gauss.map((value, i) => -(i - HALF) * value);
  const unit = (values) => values.map((value) => value / Math.hypot(...values));
  return [unit(gauss), unit(slope)];
})();

/** The magnitude of a matte's gradient, row by row; the border is replicated. */
class Gradient {
  #matte;
  #width;
  #height;
  #smooth;
  #slope;
  #padded;
  #filled;

  constructor(matte, { width, height }) {
    this.#matte = matte;
    this.#width = width;
    this.#height = height;
    this.#smooth = Array.from({ length: TAPS }, () => new Float32Array(width));
    this.#slope = Array.from({ length: TAPS }, () => new Float32Array(width));
    this.#padded = new Float32Array(width + 2 * HALF);
    this.#filled = new Int32Array(TAPS).fill(-1);
  }

  #across(y) {
    const slot = y % TAPS;
    if (this.#filled[slot] === y) return slot;
    this.#filled[slot] = y;
    const padded = this.#padded;
    const width = this.#width;
    const from = y * width;
    for (let x = 0; x < width; x++) padded[x + HALF] = this.#matte[from + x] / 255;
    padded.fill(padded[HALF], 0, HALF);
    padded.fill(padded[HALF + width - 1], HALF + width);
    const [smooth, slope] = [this.#smooth[slot], this.#slope[slot]];
    const [s0, s1, s2, s3, s4] = SMOOTH;
    const [d0, d1, d2, d3] = SLOPE;
    for (let x = 0; x < width; x++) {
      const [a, b, c, d] = [padded[x], padded[x + 1], padded[x + 2], padded[x + 3]];
      const [e, f, g, h] = [padded[x + 5], padded[x + 6], padded[x + 7], padded[x + 8]];
      smooth[x] = s0 * (a + h) + s1 * (b + g) + s2 * (c + f) + s3 * (d + e) + s4 * padded[x + 4];
      slope[x] = d0 * (a - h) + d1 * (b - g) + d2 * (c - f) + d3 * (d - e);
    }
    return slot;
  }

  /** Writes row y, columns x0..x1 (exclusive), to out[x]. */
  row(y, x0, x1, out) {
    const slots = [];
    for (let k = -HALF; k <= HALF; k++)
      slots.push(this.#across(Math.min(this.#height - 1, Math.max(0, y + k))));
    const smooth = slots.map((slot) => this.#smooth[slot]);
    const slope = slots.map((slot) => this.#slope[slot]);
    const [a, b, c, d, , f, g, h, i] = smooth;
    const [p, q, r, s, t, u, v, w, z] = slope;
    const [s0, s1, s2, s3, s4] = SMOOTH;
    const [d0, d1, d2, d3] = SLOPE;
    for (let x = x0; x < x1; x++) {
      const along =
        s0 * (p[x] + z[x]) + s1 * (q[x] + w[x]) + s2 * (r[x] + v[x]) + s3 * (s[x] + u[x]) + s4 * t[x];
      const down = d0 * (a[x] - i[x]) + d1 * (b[x] - h[x]) + d2 * (c[x] - g[x]) + d3 * (d[x] - f[x]);
      out[x] = Math.sqrt(along * along + down * down);
    }
  }
}

/** Σ (|∇α| − |∇α*|)² / 1000 over the band: Gaussian derivatives, σ 1.4, 9 × 9. */
export function gradientError(matte, truth, band, size) {
  const { width, height } = size;
  const [ours, theirs] = [new Gradient(matte, size), new Gradient(truth, size)];
  const [a, b] = [new Float32Array(width), new Float32Array(width)];
  let sum = 0;
  for (let y = 0; y < height; y++) {
    const from = y * width;
    let [x0, x1] = [0, width];
    while (x0 < width && !band[from + x0]) x0++;
    if (x0 === width) continue;
    while (!band[from + x1 - 1]) x1--;
    ours.row(y, x0, x1, a);
    theirs.row(y, x0, x1, b);
    for (let x = x0; x < x1; x++) if (band[from + x]) sum += (a[x] - b[x]) ** 2;
  }
  return sum / 1000;
}
