import { defocused, sharp } from './canvas.js';
import { dice } from './random.js';
import { both, disc, ellipse, leaf, outline, roundBox, union, without } from './shapes.js';
import { Strands, strandOf } from './strands.js';
import { skin } from './textures.js';

/**
 * What stands in front. A subject gets the image's size, a seed and its colours, decides everything at once and
 * returns a function that draws any band of rows. Lengths follow the shorter side (`unit`), so that an image of
 * 12 megapixels shows the same thing as one of 1, with finer detail.
 * @typedef {{width: number, height: number, seed: number, colours: number[][], accent: number[]}} Order
 * @typedef {(order: Order) => (band: import('./canvas.js').Band) => void} Subject
 */

const frame = ({ width, height, seed, colours }) => ({
  unit: Math.min(width, height),
  cx: width / 2,
  cy: height / 2,
  d: dice(seed),
  surface: skin({ width, height, seed: seed ^ 0x2545f491, colours }),
});

const lighter = (colour, factor) => colour.map((value) => Math.min(1, value * factor));
const flat = (colour) => ({
  row(_y, x0, x1, out) {
    for (let i = 0; i < (x1 - x0) * 3; i++) out[i] = colour[i % 3];
  },
});

/** Pieces a strand needs to look round. */
const steps = (length) => Math.max(6, Math.min(40, Math.ceil(length / 12)));

/** @type {Record<string, Subject>} */
export const SUBJECTS = {
  /** Head and shoulders with long hair, some of it loose. */
  hair(order) {
    const { unit, cx, cy, d, surface } = frame(order);
    const face = flat(lighter(order.colours[1], 1.05));
    const head = ellipse(cx, cy - unit * 0.1, unit * 0.15, unit * 0.19);
    const shoulders = union(
      ellipse(cx, cy + unit * 0.44, unit * 0.34, unit * 0.25),
      roundBox(cx, cy + unit * 0.15, unit * 0.075, unit * 0.13, unit * 0.03),
    );
    const scalp = ellipse(cx, cy - unit * 0.14, unit * 0.16, unit * 0.175);
    const strands = new Strands();
    const hair = (loose) => {
      // From the crown down both sides: the angle on the skull decides where a strand falls.
      const on = d.between(-1, 1);
      const root = -Math.PI / 2 + on * 1.9;
      const length = unit * (loose ? d.between(0.1, 0.34) : d.between(0.16, 0.4));
      const down = (on < 0 ? -1.5 : 0.5) * Math.PI - root;
      const shade = d.between(0.55, 1.25);
      strands.add(
        strandOf({
          x: cx + unit * 0.155 * Math.cos(root),
          y: cy - unit * 0.14 + unit * 0.17 * Math.sin(root),
          angle: root + d.normal() * (loose ? 0.45 : 0.12),
          length,
          bend: down * (loose ? d.between(0.1, 1) : d.between(0.75, 1)),
          wave: d.between(0.05, loose ? 0.5 : 0.22),
          phase: d.between(0, 6.3),
          radius: unit * (loose ? d.between(0.00012, 0.00045) : d.between(0.0002, 0.0007)),
          steps: steps(length),
        }),
        {
          colour: lighter(order.colours[0], shade),
          tip: lighter(order.colours[0], shade * d.between(1, 1.5)),
          opacity: d.between(loose ? 0.35 : 0.7, 1),
        },
      );
    };
    for (let i = 0; i < 1900; i++) hair(false);
    for (let i = 0; i < 420; i++) hair(true);
    return (band) => {
      band.fill(shoulders, surface);
      band.fill(scalp, flat(lighter(order.colours[0], 0.8)));
      band.fill(head, face);
      strands.draw(band);
    };
  },

  /** A round animal: short dense hairs all around. */
  fur(order) {
    const { unit, cx, cy, d, surface } = frame(order);
    const parts = [
      [cx, cy + unit * 0.1, unit * 0.3, unit * 0.27],
      [cx + unit * 0.2, cy - unit * 0.14, unit * 0.15, unit * 0.14],
      [cx + unit * 0.12, cy - unit * 0.28, unit * 0.045, unit * 0.09],
      [cx + unit * 0.28, cy - unit * 0.28, unit * 0.045, unit * 0.09],
    ];
    const body = union(...parts.map((part) => ellipse(...part)));
    const strands = new Strands();
    for (const [px, py, rx, ry] of parts) {
      const count = Math.round(((rx + ry) / unit) * 5200);
      for (let i = 0; i < count; i++) {
        const at = d.between(0, 2 * Math.PI);
        const inward = d.between(0.9, 1);
        const [x, y] = [px + rx * inward * Math.cos(at), py + ry * inward * Math.sin(at)];
        if (body.distance(x, y) < -unit * 0.03) continue;
        const length = unit * d.between(0.015, 0.05) * (d.next() < 0.06 ? 1.8 : 1);
        const shade = d.between(0.6, 1.35);
        const colour = order.colours[d.next() < 0.6 ? 0 : 1];
        strands.add(
          strandOf({
            x,
            y,
            angle: Math.atan2(Math.sin(at) * rx, Math.cos(at) * ry) + d.normal() * 0.35,
            length,
            bend: d.normal() * 0.6 + 0.25,
            wave: 0.1,
            phase: d.between(0, 6.3),
            radius: unit * d.between(0.0002, 0.0009),
            steps: steps(length),
          }),
          { colour: lighter(colour, shade), tip: lighter(colour, shade * 1.3), opacity: d.between(0.5, 1) },
        );
      }
    }
    return (band) => {
      band.fill(body, surface);
      strands.draw(band);
    };
  },

  /** A fern: a few hundred small leaves with gaps between them. */
  leaves(order) {
    const { unit, cx, cy, d, surface } = frame(order);
    const stems = new Strands();
    const leaves = [];
    const bark = { colour: order.colours[0], tip: order.colours[1], opacity: 1 };
    for (let frond = 0; frond < 5; frond++) {
      const lean = (frond - 2) * 0.5 + d.between(-0.12, 0.12);
      const length = unit * d.between(0.62, 0.8);
      const spine = strandOf({
        x: cx + unit * 0.02 * (frond - 2),
        y: cy + unit * 0.42,
        angle: -Math.PI / 2 + lean * 0.55,
        length,
        bend: lean * 0.7,
        wave: 0.03,
        phase: d.next() * 6,
        radius: unit * 0.004,
        steps: 26,
      });
      stems.add(spine, bark);
      for (let i = 3; i < 26; i++) {
        const [x, y] = [spine[i * 3], spine[i * 3 + 1]];
        const ahead = Math.atan2(spine[i * 3 + 4] - y, spine[i * 3 + 3] - x);
        const reach = length * 0.24 * Math.sin((Math.PI * (i + 3)) / 31) * d.between(0.85, 1.1);
        for (const side of [-1, 1]) {
          const angle = ahead + side * d.between(0.85, 1.15);
          const rib = strandOf({
            x,
            y,
            angle,
            length: reach,
            bend: -side * 0.35,
            wave: 0.02,
            phase: 0,
            radius: unit * 0.0012,
            steps: 9,
          });
          stems.add(rib, bark);
          for (let k = 1; k <= 9; k++) {
            const [lx, ly] = [rib[k * 3], rib[k * 3 + 1]];
            const size = reach * 0.22 * Math.sin((Math.PI * (k + 2)) / 13);
            for (const wing of k === 9 ? [0] : [-1, 1]) {
              const turn = angle + wing * d.between(0.7, 1) - side * 0.3;
              leaves.push(leaf(lx, ly, lx + size * Math.cos(turn), ly + size * Math.sin(turn), size * 0.42));
            }
          }
        }
      }
    }
    return (band) => {
      for (const one of leaves) if (band.meets(one.box[1] - 1, one.box[3] + 1)) band.fill(one, surface);
      stems.draw(band);
    };
  },

  /** A wire basket: one sees through it everywhere. */
  mesh(order) {
    const { unit, cx, cy, d, surface } = frame(order);
    const bowl = both(ellipse(cx, cy - unit * 0.05, unit * 0.4, unit * 0.42), {
      distance: (_x, y) => cy - unit * 0.12 - y,
      box: [0, 0, 1, 1],
    });
    const [pitch, wire] = [unit / d.between(26, 40), unit / d.between(260, 420)];
    const turn = d.between(0.5, 0.9);
    const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
    const toWire = (x, y) => {
      // Wires bulge towards the middle like those of a round basket.
      const [dx, dy] = [x - cx, y - cy];
      const bulge = 1 + (0.25 * (dx * dx + dy * dy)) / (unit * unit);
      const [u, v] = [(dx * cos + dy * sin) * bulge, (dy * cos - dx * sin) * bulge];
      const away = (at) => Math.abs(at - pitch * Math.round(at / pitch));
      return Math.min(away(u), away(v)) / bulge;
    };
    const rim = outline(ellipse(cx, cy - unit * 0.12, unit * 0.395, unit * 0.05), unit * 0.012);
    const foot = roundBox(cx, cy + unit * 0.375, unit * 0.16, unit * 0.016, unit * 0.012);
    // Wires are about as thin as a pixel in small images: the share of a stripe, not of an edge.
    const thin = (away) => Math.max(0, Math.min(wire / 2, away + 0.5) - Math.max(-wire / 2, away - 0.5));
    return (band) => {
      band.fill(bowl, surface, {
        holes: true,
        coverage: (distance, x, y) => Math.min(sharp(distance), thin(toWire(x, y))),
      });
      band.fill(outline(bowl, unit * 0.008), surface);
      band.fill(rim, surface);
      band.fill(foot, surface);
    };
  },

  /** A vase of tinted glass on a foot: wide areas that let the background through. */
  glass(order) {
    const { unit, cx, cy, d, surface } = frame(order);
    const clear = d.between(0.18, 0.5);
    const tint = flat(lighter(order.colours[1], 1.05));
    const body = union(
      ellipse(cx, cy + unit * 0.08, unit * 0.24, unit * 0.3),
      roundBox(cx, cy - unit * 0.26, unit * 0.1, unit * 0.14, unit * 0.03),
    );
    const liquid = both(ellipse(cx, cy + unit * 0.08, unit * 0.225, unit * 0.285), {
      distance: (_x, y) => cy + unit * 0.06 - y,
      box: [0, 0, 1, 1],
    });
    const foot = ellipse(cx, cy + unit * 0.4, unit * 0.2, unit * 0.035);
    const shine = leaf(cx - unit * 0.15, cy - unit * 0.04, cx - unit * 0.12, cy + unit * 0.22, unit * 0.04);
    const white = flat([0.97, 0.98, 1]);
    return (band) => {
      band.fill(foot, surface, { opacity: 0.92 });
      band.fill(body, tint, { opacity: clear });
      band.fill(liquid, flat(order.accent), { opacity: 0.6 });
      band.fill(outline(body, unit * 0.014), surface, { opacity: 0.85 });
      band.fill(shine, white, {
        opacity: 0.85,
        soft: unit * 0.012,
        coverage: (distance) => defocused(distance, unit * 0.012),
      });
    };
  },

  /** A ball and a stick, moved while the shutter was open. */
  motion(order) {
    const { unit, cx, cy, d, surface } = frame(order);
    const angle = d.between(0, Math.PI);
    const length = unit * d.between(0.015, 0.06);
    const [mx, my] = [length * Math.cos(angle), length * Math.sin(angle)];
    const still = union(
      disc(cx, cy, unit * 0.25),
      roundBox(cx + unit * 0.12, cy + unit * 0.2, unit * 0.05, unit * 0.24, unit * 0.04, -0.7),
    );
    const moments = Math.max(8, Math.min(24, Math.ceil(length / 2)));
    const width = length / moments;
    return (band) =>
      band.fill(still, surface, {
        soft: length / 2 + width + 1,
        coverage(_, x, y) {
          let sum = 0;
          for (let k = 0; k < moments; k++) {
            const t = (k + 0.5) / moments - 0.5;
            sum += Math.min(
              1,
              Math.max(0, 0.5 - still.distance(x - t * mx, y - t * my) / Math.max(1, width)),
            );
          }
          return sum / moments;
        },
      });
  },

  /** A cup with its handle, sharp on one side and more and more out of focus towards the other. */
  defocus(order) {
    const { unit, cx, cy, d, surface } = frame(order);
    const far = unit * d.between(0.012, 0.03);
    const shape = cup(cx, cy, unit);
    const radius = (x) => 0.5 + far * Math.min(1, Math.max(0, (x - cx) / (unit * 0.4) + 0.4));
    return (band) =>
      band.fill(shape, surface, {
        soft: far + 1,
        coverage: (distance, x) => defocused(distance, radius(x)),
      });
  },

  /** The same cup with nothing but sharp edges: what should cost nobody anything. */
  crisp(order) {
    const { unit, cx, cy, surface } = frame(order);
    const shape = cup(cx, cy, unit);
    return (band) => band.fill(shape, surface);
  },
};

/** A cup whose handle one sees through. */
function cup(cx, cy, unit) {
  const handle = outline(ellipse(cx + unit * 0.24, cy, unit * 0.13, unit * 0.15), unit * 0.05);
  const bowl = roundBox(cx - unit * 0.03, cy, unit * 0.25, unit * 0.3, unit * 0.06);
  const notch = disc(cx - unit * 0.28, cy - unit * 0.1, unit * 0.05);
  return without(union(bowl, handle), notch);
}
