/**
 * Exact Euclidean distances: for every pixel of the image, row by row, the nearest pixel with mask ≠ 0.
 * @param {Uint8Array} mask @param {import('./band.js').Size} size
 * @param {(y: number, squared: Float64Array, nearest: Int32Array) => void} each called for every row: squared distances
 *   and the places of the nearest pixels; both are written over afterwards. Not called for an empty mask.
 */
export function nearestRows(mask, { width, height }, each) {
  // Nearest set row in each column, from above, then corrected from below.
  const rows = new Int32Array(width * height);
  const last = new Int32Array(width).fill(-1);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      if (mask[i]) last[x] = y;
      rows[i] = last[x];
    }
  }
  if (!last.some((row) => row >= 0)) return;
  last.fill(-1);
  for (let y = height - 1; y >= 0; y--) {
    for (let x = 0, i = y * width; x < width; x++, i++) {
      if (mask[i]) last[x] = y;
      if (last[x] >= 0 && (rows[i] < 0 || last[x] - y < y - rows[i])) rows[i] = last[x];
    }
  }
  const squared = new Float64Array(width);
  const nearest = new Int32Array(width);
  const at = new Int32Array(width); // columns whose parabola is part of the lower envelope
  const from = new Float64Array(width + 1); // where each begins
  for (let y = 0; y < height; y++) {
    const line = y * width;
    let top = -1;
    for (let x = 0; x < width; x++) {
      const row = rows[line + x];
      if (row < 0) continue;
      const value = (row - y) * (row - y) + x * x;
      let start = Number.NEGATIVE_INFINITY;
      while (top >= 0) {
        const other = at[top];
        const there = rows[line + other] - y;
        start = (value - (there * there + other * other)) / (2 * (x - other));
        if (start > from[top]) break;
        top--;
        start = Number.NEGATIVE_INFINITY;
      }
      top++;
      at[top] = x;
      from[top] = start;
    }
    for (let x = 0, k = 0; x < width; x++) {
      while (k < top && from[k + 1] < x) k++;
      const column = at[k];
      const row = rows[line + column];
      squared[x] = (x - column) * (x - column) + (row - y) * (row - y);
      nearest[x] = row * width + column;
    }
    each(y, squared, nearest);
  }
}
