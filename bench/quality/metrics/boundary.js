/** What is left of {matte ≥ 128} after eroding it `radius` times by 3 × 3; outside the image there is nothing. */
function eroded(matte, { width, height }, radius) {
  const out = new Uint8Array(matte.length);
  const run = new Int32Array(width); // set rows in a row, after erosion along the rows
  for (let y = 0; y < height; y++) {
    const from = y * width;
    let length = 0;
    for (let x = 0; x < width + radius; x++) {
      // `length` set pixels end at x: the pixel `radius` before it survives when they reach far enough back.
      length = x < width && matte[from + x] >= 128 ? length + 1 : 0;
      const middle = x - radius;
      if (middle < 0) continue;
      run[middle] = length > 2 * radius ? run[middle] + 1 : 0;
      if (run[middle] > 2 * radius) out[from - radius * width + middle] = 1;
    }
  }
  return out;
}

/** Boundary IoU: mask minus its erosion, as wide as 2 % of the diagonal; intersection over union. 1 when both are empty. */
export function boundaryIou(matte, truth, size) {
  const radius = Math.max(1, Math.round(0.02 * Math.hypot(size.width, size.height)));
  const [ours, theirs] = [eroded(matte, size, radius), eroded(truth, size, radius)];
  let [shared, either] = [0, 0];
  for (let i = 0; i < matte.length; i++) {
    const a = matte[i] >= 128 && !ours[i];
    const b = truth[i] >= 128 && !theirs[i];
    if (a && b) shared++;
    if (a || b) either++;
  }
  return either === 0 ? 1 : shared / either;
}
