import { random } from './random.js';

const SIDE = 256;

/**
 * Smooth lattice noise in 0..1 that repeats after 256 cells, made row by row: one row of lattice values, blended from
 * two, then smoothed along it.
 */
export class Noise {
  #table = new Float32Array(SIDE * SIDE);
  #line = new Float32Array(SIDE + 1);
  #at = Number.NaN;

  /** @param {number} seed @param {number} cell size of a cell in pixels, above 0 */
  constructor(seed, cell) {
    const next = random(seed);
    for (let i = 0; i < this.#table.length; i++) this.#table[i] = next();
    this.cell = cell;
  }

  /** Adds `weight` × noise of row y, columns x0..x1 (exclusive), to out[0..]. */
  add(y, x0, x1, weight, out) {
    if (this.#at !== y) this.#blend(y);
    const line = this.#line;
    const step = 1 / this.cell;
    let at = (x0 + 0.5) * step;
    let cell = Math.floor(at);
    let a = line[cell & (SIDE - 1)];
    let rise = line[(cell & (SIDE - 1)) + 1] - a;
    for (let i = 0; i < x1 - x0; i++) {
      const t = at - cell;
      out[i] += weight * (a + rise * t * t * (3 - 2 * t));
      at += step;
      if (at >= cell + 1) {
        cell = Math.floor(at);
        a = line[cell & (SIDE - 1)];
        rise = line[(cell & (SIDE - 1)) + 1] - a;
      }
    }
  }

  #blend(y) {
    this.#at = y;
    const at = (y + 0.5) / this.cell;
    const cell = Math.floor(at);
    const t = at - cell;
    const smooth = t * t * (3 - 2 * t);
    const top = (cell & (SIDE - 1)) * SIDE;
    const bottom = ((cell + 1) & (SIDE - 1)) * SIDE;
    for (let i = 0; i < SIDE; i++) {
      const a = this.#table[top + i];
      this.#line[i] = a + (this.#table[bottom + i] - a) * smooth;
    }
    this.#line[SIDE] = this.#line[0];
  }
}

const GRAINS = 1 << 16;

/** What a sensor leaves: independent values in 0..1 for every pixel, from one table entered elsewhere for each row. */
export class Grain {
  #table = new Float32Array(GRAINS);
  #seed;

  constructor(seed) {
    const next = random(seed);
    for (let i = 0; i < GRAINS; i++) this.#table[i] = (next() + next()) / 2;
    this.#seed = seed;
  }

  /** Adds `weight` × (grain − 0.5) of row y, columns x0..x1 (exclusive), to out[0..]. */
  add(y, x0, x1, weight, out) {
    const from = Math.floor(random(Math.imul(y, 0x27d4eb2d) ^ this.#seed)() * GRAINS);
    for (let x = x0; x < x1; x++) out[x - x0] += weight * (this.#table[(from + x) & (GRAINS - 1)] - 0.5);
  }
}
