/**
 * Planes are Float32Arrays of 0..1, row after row. Resampling is by areas (down) and between sample centres (up), the
 * borders replicated, as OpenCV's INTER_AREA and INTER_LINEAR do.
 * @typedef {{width: number, height: number}} Size
 */

/** Which samples a reduced one covers, with their shares. */
function spans(from, to) {
  const step = from / to;
  return Array.from({ length: to }, (_, i) => {
    const [begin, end] = [i * step, Math.min(from, (i + 1) * step)];
    const first = Math.floor(begin);
    const last = Math.min(from, Math.ceil(end - 1e-9));
    const shares = [];
    for (let k = first; k < last; k++)
      shares.push((Math.min(end, k + 1) - Math.max(begin, k)) / (end - begin));
    return { first, shares };
  });
}

/**
 * Area average of interleaved 8-bit samples.
 * @param {Uint8Array} data @param {Size & {channels: number}} from @param {Size} to
 * @returns {Float32Array[]} one plane a channel, 0..1
 */
export function reduce(data, { width, height, channels }, to) {
  const planes = Array.from({ length: channels }, () => new Float32Array(to.width * to.height));
  const columns = spans(width, to.width);
  const rows = spans(height, to.height);
  const line = new Float32Array(to.width * channels);
  rows.forEach(({ first, shares }, y) => {
    line.fill(0);
    shares.forEach((share, k) => {
      const start = (first + k) * width;
      for (let x = 0; x < to.width; x++) {
        const column = columns[x];
        const weights = column.shares;
        for (let c = 0; c < channels; c++) {
          let sum = 0;
          for (
            let i = 0, at = (start + column.first) * channels + c;
            i < weights.length;
            i++, at += channels
          ) {
            sum += weights[i] * data[at];
          }
          line[x * channels + c] += share * sum;
        }
      }
    });
    for (let x = 0; x < to.width; x++) {
      for (let c = 0; c < channels; c++) planes[c][y * to.width + x] = line[x * channels + c] / 255;
    }
  });
  return planes;
}

/** Two neighbouring samples and the second one's share, for every place of the enlarged line. */
function pairs(from, to) {
  const [first, share] = [new Int32Array(to), new Float32Array(to)];
  for (let i = 0; i < to; i++) {
    const at = Math.min(from - 1, Math.max(0, ((i + 0.5) * from) / to - 0.5));
    first[i] = Math.min(Math.floor(at), Math.max(0, from - 2));
    share[i] = from > 1 ? at - first[i] : 0;
  }
  return { first, share };
}

/** A plane at another size, bilinear, as an 8-bit matte. @param {Float32Array} plane @param {Size} from @param {Size} to */
export function enlarge(plane, from, to) {
  const out = new Uint8Array(to.width * to.height);
  const columns = pairs(from.width, to.width);
  const rows = pairs(from.height, to.height);
  const line = new Float32Array(from.width + 1);
  const below = from.height > 1 ? from.width : 0;
  for (let y = 0, i = 0; y < to.height; y++) {
    const start = rows.first[y] * from.width;
    const down = rows.share[y];
    for (let x = 0; x < from.width; x++) {
      line[x] = plane[start + x] + (plane[start + below + x] - plane[start + x]) * down;
    }
    line[from.width] = line[from.width - 1];
    for (let x = 0; x < to.width; x++, i++) {
      const a = line[columns.first[x]];
      const value = a + (line[columns.first[x] + 1] - a) * columns.share[x];
      out[i] = value <= 0 ? 0 : value >= 1 ? 255 : value * 255 + 0.5;
    }
  }
  return out;
}

/** Gaussian blur, σ in pixels, the border mirrored without repeating it. */
export function blur(plane, { width, height }, sigma) {
  if (!(sigma > 0)) return plane;
  const half = Math.ceil(4 * sigma);
  const taps = Array.from({ length: 2 * half + 1 }, (_, i) =>
    Math.exp(-((i - half) ** 2) / (2 * sigma * sigma)),
  );
  const sum = taps.reduce((a, b) => a + b, 0);
  const mirror = (i, n) => {
    if (n === 1) return 0;
    const at = ((i % (2 * n - 2)) + 2 * n - 2) % (2 * n - 2);
    return at < n ? at : 2 * n - 2 - at;
  };
  const along = (from, n, lines, step, stride) => {
    const out = new Float32Array(from.length);
    const line = new Float32Array(n + 2 * half);
    for (let k = 0; k < lines; k++) {
      for (let i = 0; i < line.length; i++) line[i] = from[k * stride + mirror(i - half, n) * step];
      for (let i = 0; i < n; i++) {
        let total = 0;
        for (let t = 0; t < taps.length; t++) total += taps[t] * line[i + t];
        out[k * stride + i * step] = total / sum;
      }
    }
    return out;
  };
  return along(along(plane, width, height, 1, width), height, width, width, 1);
}

/**
 * What a soft network would say of a known truth at 1/scale of its size: averaged, blurred, 8 bits.
 * @param {Uint8Array} truth @param {Size} size both sides multiples of `scale`
 * @returns {{p: Float32Array, width: number, height: number}}
 */
export function simulate(truth, size, scale, sigma) {
  const small = { width: size.width / scale, height: size.height / scale };
  const [plane] = reduce(truth, { ...size, channels: 1 }, small);
  const p = blur(plane, small, sigma).map((value) => Math.round(value * 255) / 255);
  return { p, ...small };
}
