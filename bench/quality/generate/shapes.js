/**
 * Shapes as distances to their edge in pixels, negative inside. Values may be smaller in size than the true distance,
 * never larger (the canvas skips blocks by them), and are exact near the edge.
 * @typedef {{distance: (x: number, y: number) => number, box: [number, number, number, number]}} Shape
 *   box: left, top, right, bottom; distance is positive outside
 */

/** @returns {Shape} */
export function disc(cx, cy, radius) {
  return {
    distance: (x, y) => Math.sqrt((x - cx) * (x - cx) + (y - cy) * (y - cy)) - radius,
    box: [cx - radius, cy - radius, cx + radius, cy + radius],
  };
}

const TURNS = 4;

/**
 * Distance to an ellipse: the nearest point is found by following its centres of curvature (a few turns settle it).
 * @returns {Shape}
 */
export function ellipse(cx, cy, rx, ry) {
  const bulge = rx * rx - ry * ry;
  return {
    distance(x, y) {
      const [px, py] = [Math.abs(x - cx), Math.abs(y - cy)];
      let [tx, ty] = [Math.SQRT1_2, Math.SQRT1_2];
      for (let turn = 0; turn < TURNS; turn++) {
        const [ex, ey] = [(bulge * tx * tx * tx) / rx, (-bulge * ty * ty * ty) / ry];
        const [ax, ay] = [rx * tx - ex, ry * ty - ey];
        const [bx, by] = [px - ex, py - ey];
        const scale = Math.sqrt((ax * ax + ay * ay) / (bx * bx + by * by + 1e-12));
        tx = Math.min(1, Math.max(0, (bx * scale + ex) / rx));
        ty = Math.min(1, Math.max(0, (by * scale + ey) / ry));
        const length = Math.sqrt(tx * tx + ty * ty) || 1;
        tx /= length;
        ty /= length;
      }
      const [dx, dy] = [px - rx * tx, py - ry * ty];
      const away = Math.sqrt(dx * dx + dy * dy);
      return (px * px) / (rx * rx) + (py * py) / (ry * ry) < 1 ? -away : away;
    },
    box: [cx - rx, cy - ry, cx + rx, cy + ry],
  };
}

/** A box with round corners, turned by `angle`. @returns {Shape} */
export function roundBox(cx, cy, halfWidth, halfHeight, corner, angle = 0) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const reach = Math.sqrt(halfWidth * halfWidth + halfHeight * halfHeight);
  return {
    distance(x, y) {
      const [dx, dy] = [x - cx, y - cy];
      const qx = Math.abs(dx * cos + dy * sin) - halfWidth + corner;
      const qy = Math.abs(dy * cos - dx * sin) - halfHeight + corner;
      const [ox, oy] = [Math.max(qx, 0), Math.max(qy, 0)];
      return Math.sqrt(ox * ox + oy * oy) + Math.min(Math.max(qx, qy), 0) - corner;
    },
    box: [cx - reach, cy - reach, cx + reach, cy + reach],
  };
}

/** A pointed leaf from one point to another; `width` is its full width in the middle. @returns {Shape} */
export function leaf(x0, y0, x1, y1, width) {
  const [mx, my] = [(x0 + x1) / 2, (y0 + y1) / 2];
  const half = Math.sqrt((x1 - x0) ** 2 + (y1 - y0) ** 2) / 2 || 0.5;
  const [ux, uy] = [(x1 - x0) / (2 * half), (y1 - y0) / (2 * half)];
  const w = Math.min(width / 2, half);
  // Two circles through both ends.
  const radius = (half * half + w * w) / (2 * w);
  const offset = radius - w;
  return {
    distance(x, y) {
      const along = (x - mx) * ux + (y - my) * uy;
      const across = Math.abs((y - my) * ux - (x - mx) * uy);
      return Math.sqrt(along * along + (across + offset) * (across + offset)) - radius;
    },
    box: [
      Math.min(x0, x1, mx - w) - w,
      Math.min(y0, y1, my - w) - w,
      Math.max(x0, x1, mx + w) + w,
      Math.max(y0, y1, my + w) + w,
    ],
  };
}

/** @returns {Shape} */
export function union(...shapes) {
  return {
    distance(x, y) {
      let least = Number.POSITIVE_INFINITY;
      for (const shape of shapes) least = Math.min(least, shape.distance(x, y));
      return least;
    },
    box: shapes
      .map(({ box }) => box)
      .reduce((a, b) => [
        Math.min(a[0], b[0]),
        Math.min(a[1], b[1]),
        Math.max(a[2], b[2]),
        Math.max(a[3], b[3]),
      ]),
  };
}

/** The part of `shape` outside `hole`. @returns {Shape} */
export function without(shape, hole) {
  return { distance: (x, y) => Math.max(shape.distance(x, y), -hole.distance(x, y)), box: shape.box };
}

/** What two shapes share. @returns {Shape} */
export function both(a, b) {
  return { distance: (x, y) => Math.max(a.distance(x, y), b.distance(x, y)), box: a.box };
}

/** A line along the edge of a shape, `width` wide. @returns {Shape} */
export function outline(shape, width) {
  const [left, top, right, bottom] = shape.box;
  const half = width / 2;
  return {
    distance: (x, y) => Math.abs(shape.distance(x, y)) - half,
    box: [left - half, top - half, right + half, bottom + half],
  };
}
