/**
 * A strand of `steps` pieces that leaves (x, y) in direction `angle`, bends evenly by `bend` radians over its length
 * and waves a little. Its radius shrinks towards the tip.
 * @param {{x: number, y: number, angle: number, length: number, bend: number, wave: number, phase: number, radius: number, steps: number}} of
 *   pixels and radians
 * @returns {Float32Array} x, y, radius of steps + 1 points
 */
export function strandOf({ x, y, angle, length, bend, wave, phase, radius, steps }) {
  const points = new Float32Array((steps + 1) * 3);
  const step = length / steps;
  let [px, py] = [x, y];
  for (let i = 0; i <= steps; i++) {
    const t = i / steps;
    points[i * 3] = px;
    points[i * 3 + 1] = py;
    points[i * 3 + 2] = radius * Math.sqrt(1 - 0.92 * t);
    const heading = angle + bend * t + wave * Math.sin(phase + t * 9);
    px += step * Math.cos(heading);
    py += step * Math.sin(heading);
  }
  return points;
}

/** Top and bottom of a strand. */
export function extent(points) {
  let [top, bottom] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < points.length; i += 3) {
    top = Math.min(top, points[i + 1] - points[i + 2] - 1);
    bottom = Math.max(bottom, points[i + 1] + points[i + 2] + 1);
  }
  return { top, bottom };
}

/** Strands that are drawn in the order they were made, band by band. */
export class Strands {
  #all = [];

  add(points, look) {
    this.#all.push({ points, look, ...extent(points) });
  }

  draw(band) {
    for (const { points, look, top, bottom } of this.#all) {
      if (band.meets(top, bottom)) band.strand(points, look);
    }
  }
}
