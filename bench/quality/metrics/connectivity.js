/** Pixels of the largest 4-connected part of {least ≥ threshold}, as runs; found row by row with joined sets. */
class Parts {
  constructor({ width, height }) {
    this.width = width;
    this.height = height;
    this.begin = new Int32Array(1 << 16);
    this.end = new Int32Array(1 << 16);
    this.parent = new Int32Array(1 << 16);
    this.area = new Float64Array(1 << 16);
  }

  #grow() {
    for (const name of ['begin', 'end', 'parent', 'area']) {
      const more = new this[name].constructor(this[name].length * 2);
      more.set(this[name]);
      this[name] = more;
    }
  }

  #root(run) {
    const parent = this.parent;
    while (parent[run] !== run) {
      parent[run] = parent[parent[run]];
      run = parent[run];
    }
    return run;
  }

  /** Calls `each(begin, end)`, positions in the image, for every run of the largest part; the first of equals. */
  largest(least, threshold, each) {
    let count = 0;
    let [before, beforeEnd] = [0, 0];
    for (let y = 0; y < this.height; y++) {
      const from = y * this.width;
      const to = from + this.width;
      const first = count;
      let above = before;
      for (let at = from; at < to; at++) {
        if (least[at] < threshold) continue;
        const begin = at;
        while (at < to && least[at] >= threshold) at++;
        if (count === this.begin.length) this.#grow();
        this.begin[count] = begin;
        this.end[count] = at;
        this.parent[count] = count;
        this.area[count] = at - begin;
        // Runs of the row above that share a column with it.
        while (above < beforeEnd && this.end[above] + this.width <= begin) above++;
        for (let k = above; k < beforeEnd && this.begin[k] + this.width < at; k++) {
          const [a, b] = [this.#root(k), this.#root(count)];
          if (a === b) continue;
          const [low, high] = a < b ? [a, b] : [b, a];
          this.parent[high] = low;
          this.area[low] += this.area[high];
        }
        count++;
      }
      before = first;
      beforeEnd = count;
    }
    let best = -1;
    for (let run = 0; run < count; run++) {
      if (this.parent[run] === run && (best < 0 || this.area[run] > this.area[best])) best = run;
    }
    for (let run = 0; run < count; run++) if (this.#root(run) === best) each(this.begin[run], this.end[run]);
  }
}

/**
 * Σ |φ(α) − φ(α*)| / 1000 over the band. l is the last level of 0, .1 … 1 before a pixel first drops out of the
 * largest 4-connected part of {α ≥ t} ∩ {α* ≥ t}; d = α − l; φ = 1 − d where d ≥ .15, else 1.
 */
export function connectivityError(matte, truth, band, size) {
  const pixels = matte.length;
  const least = new Uint8Array(pixels);
  for (let i = 0; i < pixels; i++) least[i] = Math.min(matte[i], truth[i]);
  const parts = new Parts(size);
  // Level in tenths of the last part a pixel belonged to, as long as it belonged to all before.
  const level = new Uint8Array(pixels);
  for (let tenth = 1; tenth <= 10; tenth++) {
    parts.largest(least, Math.ceil(25.5 * tenth), (begin, end) => {
      for (let i = begin; i < end; i++) if (level[i] === tenth - 1) level[i] = tenth;
    });
  }
  let sum = 0;
  for (let i = 0; i < pixels; i++) {
    if (!band[i]) continue;
    const phi = (alpha) => {
      // In 2550ths: alpha / 255 − level / 10 ≥ .15, without rounding.
      const d = alpha * 10 - level[i] * 255;
      return d * 2 >= 765 ? 1 - d / 2550 : 1;
    };
    sum += Math.abs(phi(matte[i]) - phi(truth[i]));
  }
  return sum / 1000;
}
