/**
 * Some rows of an image, premultiplied colour and opacity 0..1: layers are put over each other exactly, and what is
 * read out afterwards, opacity and colour = premultiplied / opacity, is the truth of the image.
 */
const BLOCK = 16;
const [OUTSIDE, EDGE, INSIDE] = [0, 1, 2];

/** Covered share of a pixel whose centre is `distance` from a straight edge. */
export const sharp = (distance) => (distance <= -0.5 ? 1 : distance >= 0.5 ? 0 : 0.5 - distance);

/** An edge out of focus: the share of a disc of that radius (pixels) beyond a straight edge. */
export function defocused(distance, radius) {
  const at = -distance / Math.max(0.5, radius);
  if (at <= -1) return 0;
  return at >= 1 ? 1 : 0.5 + (at * Math.sqrt(1 - at * at) + Math.asin(at)) / Math.PI;
}

export class Band {
  /** @param {number} width of the image @param {number} top first row @param {number} rows */
  constructor(width, top, rows) {
    this.width = width;
    this.top = top;
    this.rows = rows;
    this.data = new Float32Array(width * rows * 4);
    this.#line = new Float32Array(width * 3);
    this.#cover = new Float32Array(width * rows);
    this.#shade = new Float32Array(width * rows);
    this.#touched = new Int32Array(1 << 14);
  }

  /** Empties the band and puts it elsewhere; `rows` at most what it was made for. */
  moveTo(top, rows) {
    this.top = top;
    this.rows = rows;
    this.data.fill(0);
  }

  #line;
  #cover;
  #shade;
  #touched;
  #count = 0;

  /** Whether anything between two rows of the image lies in this band. */
  meets(top, bottom) {
    return bottom >= this.top && top < this.top + this.rows;
  }

  #over(at, r, g, b, a) {
    const data = this.data;
    const left = 1 - a;
    data[at] = r * a + data[at] * left;
    data[at + 1] = g * a + data[at + 1] * left;
    data[at + 2] = b * a + data[at + 2] * left;
    data[at + 3] = a + data[at + 3] * left;
  }

  /**
   * Puts a shape over what is there. `coverage(distance, x, y)` must be 0 above `soft` and 1 below -`soft` pixels.
   * Blocks that are wholly inside or outside are not looked into; `holes` says that coverage may be below 1 anywhere
   * inside.
   */
  fill(shape, surface, { opacity = 1, soft = 0.5, coverage = sharp, holes = false } = {}) {
    const [left, top, right, bottom] = shape.box;
    const [x0, x1] = [
      Math.max(0, Math.floor(left - soft)),
      Math.min(this.width, Math.ceil(right + soft) + 1),
    ];
    const y0 = Math.max(this.top, Math.floor(top - soft));
    const y1 = Math.min(this.top + this.rows, Math.ceil(bottom + soft) + 1);
    if (x0 >= x1) return;
    const reach = BLOCK * Math.SQRT1_2 + soft;
    const blocks = new Uint8Array(Math.ceil((x1 - x0) / BLOCK));
    for (let by = y0; by < y1; by += BLOCK) {
      let any = false;
      for (let block = 0; block < blocks.length; block++) {
        const middle = shape.distance(x0 + block * BLOCK + BLOCK / 2, by + BLOCK / 2);
        blocks[block] = middle > reach ? OUTSIDE : middle < -reach && !holes ? INSIDE : EDGE;
        if (blocks[block] !== OUTSIDE) any = true;
      }
      if (!any) continue;
      const end = Math.min(y1, by + BLOCK);
      for (let y = by; y < end; y++) {
        for (let block = 0; block < blocks.length; ) {
          const first = block;
          const kind = blocks[block];
          while (block < blocks.length && blocks[block] === kind) block++;
          if (kind === OUTSIDE) continue;
          const to = Math.min(x1, x0 + block * BLOCK);
          this.#fillRow(
            shape,
            surface,
            y,
            x0 + first * BLOCK,
            to,
            kind === INSIDE ? null : coverage,
            opacity,
          );
        }
      }
    }
  }

  #fillRow(shape, surface, y, x0, x1, coverage, opacity) {
    const line = this.#line;
    surface.row(y, x0, x1, line);
    let at = ((y - this.top) * this.width + x0) * 4;
    for (let x = x0, i = 0; x < x1; x++, i += 3, at += 4) {
      const covered = coverage
        ? opacity * coverage(shape.distance(x + 0.5, y + 0.5), x + 0.5, y + 0.5)
        : opacity;
      if (covered > 0) this.#over(at, line[i], line[i + 1], line[i + 2], covered);
    }
  }

  /**
   * Puts a strand over what is there: a polyline of x, y, radius triples, all in pixels. Any radius is covered in
   * proportion: a hair of 0.2 pixels gives 0.4 at most. A strand is one layer: it does not cover itself twice.
   * @param {Float32Array} points
   * @param {{colour: number[], tip: number[], opacity: number}} look colour at the root and at the tip
   */
  strand(points, { colour, tip, opacity }) {
    const last = points.length / 3 - 1;
    this.#count = 0;
    for (let i = 0; i < last; i++) this.#segment(points, i, i / last, 1 / last);
    for (let k = 0; k < this.#count; k++) {
      const at = this.#touched[k];
      const share = this.#shade[at];
      this.#over(
        at * 4,
        colour[0] + (tip[0] - colour[0]) * share,
        colour[1] + (tip[1] - colour[1]) * share,
        colour[2] + (tip[2] - colour[2]) * share,
        this.#cover[at] * opacity,
      );
      this.#cover[at] = 0;
    }
  }

  #segment(points, index, from, step) {
    const [ax, ay, ar] = [points[index * 3], points[index * 3 + 1], points[index * 3 + 2]];
    const [bx, by, br] = [points[index * 3 + 3], points[index * 3 + 4], points[index * 3 + 5]];
    const [dx, dy] = [bx - ax, by - ay];
    const square = dx * dx + dy * dy;
    if (square === 0) return;
    const reach = Math.max(ar, br) + 0.75;
    const [top, bottom] = [Math.min(ay, by) - reach, Math.max(ay, by) + reach];
    const [low, high] = [Math.min(ax, bx) - reach, Math.max(ax, bx) + reach];
    // Half the width of the strand's stripe along a row.
    const wide = (reach * Math.sqrt(square)) / Math.max(Math.abs(dy), 1e-6);
    const y1 = Math.min(this.top + this.rows, Math.ceil(bottom));
    for (let y = Math.max(this.top, Math.floor(top)); y < y1; y++) {
      const centre = ax + ((y + 0.5 - ay) * dx) / (Math.abs(dy) < 1e-6 ? 1e-6 : dy);
      const x0 = Math.max(0, Math.floor(Math.max(low, centre - wide)));
      const x1 = Math.min(this.width, Math.ceil(Math.min(high, centre + wide)));
      for (let x = x0; x < x1; x++) {
        const t = Math.min(1, Math.max(0, ((x + 0.5 - ax) * dx + (y + 0.5 - ay) * dy) / square));
        const [ex, ey] = [x + 0.5 - ax - t * dx, y + 0.5 - ay - t * dy];
        const distance = Math.sqrt(ex * ex + ey * ey);
        const radius = ar + (br - ar) * t;
        const covered = Math.min(radius, distance + 0.5) - Math.max(-radius, distance - 0.5);
        if (covered > 0) this.#touch((y - this.top) * this.width + x, covered, from + step * t);
      }
    }
  }

  #touch(at, covered, share) {
    const before = this.#cover[at];
    if (covered <= before) return;
    if (before === 0) {
      if (this.#count === this.#touched.length) {
        const more = new Int32Array(this.#count * 2);
        more.set(this.#touched);
        this.#touched = more;
      }
      this.#touched[this.#count++] = at;
    }
    this.#cover[at] = covered;
    this.#shade[at] = share;
  }
}
