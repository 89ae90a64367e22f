import { Grain, Noise } from './noise.js';
import { dice } from './random.js';

/**
 * Procedural surfaces. A texture writes one row at a time, `row(y, x0, x1, out)`: colours 0..1, three a pixel, columns
 * x0..x1 (exclusive), and is a function of its arguments alone.
 * @typedef {{row: (y: number, x0: number, x1: number, out: Float32Array) => void}} Texture
 * @typedef {[number, number, number]} Colour 0..1
 * @typedef {{width: number, height: number, seed: number, colours: [Colour, Colour]}} Ground
 */

/** Writes colours[0] + t (colours[1] - colours[0]) + grain for a row of t and a row of grain. */
function mix([a, b], t, grain, n, out) {
  for (let i = 0, at = 0; i < n; i++, at += 3) {
    const share = t[i];
    const extra = grain[i];
    out[at] = a[0] + (b[0] - a[0]) * share + extra;
    out[at + 1] = a[1] + (b[1] - a[1]) * share + extra;
    out[at + 2] = a[2] + (b[2] - a[2]) * share + extra;
  }
}

/** Rows of a texture that is a share between two colours plus grain around 0. */
function blended({ width, colours, seed }, grainWeight, share) {
  const grain = new Grain(seed ^ 0x51ed270b);
  const t = new Float32Array(width);
  const g = new Float32Array(width);
  return {
    row(y, x0, x1, out) {
      const n = x1 - x0;
      t.fill(0, 0, n);
      g.fill(0, 0, n);
      share(y, x0, x1, t);
      grain.add(y, x0, x1, grainWeight, g);
      mix(colours, t, g, n, out);
    },
  };
}

const MAP_SIDE = 512;

/** Discs of light out of focus over darkness, painted small and enlarged: they are blurred anyway. */
function bokeh({ width, height, seed, colours }) {
  const scale = Math.max(1, Math.max(width, height) / MAP_SIDE);
  const mapWidth = Math.ceil(width / scale) + 2;
  const mapHeight = Math.ceil(height / scale) + 2;
  const map = new Float32Array(mapWidth * mapHeight * 3);
  const d = dice(seed);
  const unit = Math.min(mapWidth, mapHeight);
  for (let i = 0; i < map.length; i++) map[i] = colours[0][i % 3] * 0.6;
  for (let disc = 0; disc < 70; disc++) {
    const radius = unit * d.between(0.03, 0.14);
    const [cx, cy] = [d.between(0, mapWidth), d.between(0, mapHeight)];
    const strength = d.between(0.15, 0.75);
    const warm = d.next();
    for (let y = Math.max(0, Math.floor(cy - radius - 2)); y < Math.min(mapHeight, cy + radius + 2); y++) {
      for (let x = Math.max(0, Math.floor(cx - radius - 2)); x < Math.min(mapWidth, cx + radius + 2); x++) {
        const inside = Math.min(1, Math.max(0, (radius - Math.sqrt((x - cx) ** 2 + (y - cy) ** 2)) / 2));
        const a = inside * strength;
        for (let c = 0; c < 3; c++) {
          const at = (y * mapWidth + x) * 3 + c;
          const light = colours[1][c] * (1 - warm * 0.5) + colours[0][c] * warm * 0.5;
          map[at] += a * (light - map[at]);
        }
      }
    }
  }
  const grain = new Grain(seed ^ 0x51ed270b);
  const g = new Float32Array(width);
  return {
    row(y, x0, x1, out) {
      g.fill(0, 0, x1 - x0);
      grain.add(y, x0, x1, 0.03, g);
      const v = (y + 0.5) / scale;
      const top = Math.min(mapHeight - 2, Math.floor(v));
      const fy = v - top;
      for (let x = x0, at = 0, i = 0; x < x1; x++, i++) {
        const u = (x + 0.5) / scale;
        const left = Math.min(mapWidth - 2, Math.floor(u));
        const fx = u - left;
        const a = (top * mapWidth + left) * 3;
        const b = a + mapWidth * 3;
        for (let c = 0; c < 3; c++, at++) {
          const above = map[a + c] + (map[a + 3 + c] - map[a + c]) * fx;
          const below = map[b + c] + (map[b + 3 + c] - map[b + c]) * fx;
          out[at] = above + (below - above) * fy + g[i];
        }
      }
    },
  };
}

/** @type {Record<string, (ground: Ground) => Texture>} */
const TEXTURES = {
  /** Clouds: three octaves and grain. */
  noise(ground) {
    const unit = Math.min(ground.width, ground.height);
    const octaves = [
      [new Noise(ground.seed, unit / 4), 0.6],
      [new Noise(ground.seed + 1, unit / 15), 0.28],
      [new Noise(ground.seed + 2, Math.max(2, unit / 70)), 0.2],
    ];
    return blended(ground, 0.06, (y, x0, x1, t) => {
      for (const [noise, weight] of octaves) noise.add(y, x0, x1, weight, t);
    });
  },
  /** A slope across the image. */
  gradient(ground) {
    const angle = dice(ground.seed).between(0, 2 * Math.PI);
    const [dx, dy] = [Math.cos(angle) / ground.width, Math.sin(angle) / ground.height];
    return blended(ground, 0.03, (y, x0, x1, t) => {
      const start = 0.5 + (y - ground.height / 2) * dy - (ground.width / 2) * dx;
      for (let x = x0, i = 0; x < x1; x++, i++) t[i] = Math.min(1, Math.max(0, start + x * dx));
    });
  },
  bokeh,
  /** Rows of bricks with joints, every brick of its own shade. */
  bricks(ground) {
    const unit = Math.min(ground.width, ground.height);
    const [long, high] = [unit / 9, unit / 24];
    const joint = high * 0.1;
    const shades = new Float32Array(4096);
    const d = dice(ground.seed);
    for (let i = 0; i < shades.length; i++) shades[i] = d.between(0.55, 1);
    const rough = new Noise(ground.seed + 3, Math.max(1.5, unit / 400));
    return blended(ground, 0.05, (y, x0, x1, t) => {
      const course = Math.floor(y / high);
      const dy = Math.min(y - course * high, (course + 1) * high - y);
      const shift = (course & 1) * 0.5 * long;
      for (let x = x0, i = 0; x < x1; x++, i++) {
        const brick = Math.floor((x + shift) / long);
        const into = x + shift - brick * long;
        const inside = Math.min(1, Math.max(0, (Math.min(dy, into, long - into) - joint) / 1.5 + 0.5));
        t[i] = inside * shades[(course * 67 + brick) & 4095] - 0.1;
      }
      rough.add(y, x0, x1, 0.2, t);
    });
  },
  /** Slanted stripes with sharp, anti-aliased borders. */
  stripes(ground) {
    const d = dice(ground.seed);
    const period = Math.min(ground.width, ground.height) / d.between(12, 30);
    const angle = d.between(0, Math.PI);
    const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
    return blended(ground, 0.04, (y, x0, x1, t) => {
      for (let x = x0, i = 0; x < x1; x++, i++) {
        const at = (x * dx + y * dy) / period;
        const wave = Math.abs(at - Math.floor(at) - 0.5) - 0.25;
        t[i] = Math.min(1, Math.max(0, wave * period + 0.5));
      }
    });
  },
};

export const GROUNDS = Object.keys(TEXTURES);

/** @param {string} name one of GROUNDS @param {Ground} ground @returns {Texture} */
export function texture(name, ground) {
  return TEXTURES[name](ground);
}

/** The surface of a subject: two colours in soft patches, shaded from one side. */
export function skin({ width, height, seed, colours }) {
  const unit = Math.min(width, height);
  const patches = new Noise(seed, unit / 9);
  const fine = new Noise(seed + 1, Math.max(1.5, unit / 260));
  return blended({ width, height, seed, colours }, 0.05, (y, x0, x1, t) => {
    const light = 0.35 - (0.5 * y) / height;
    for (let i = 0; i < x1 - x0; i++) t[i] = light + (0.25 * (x0 + i)) / width;
    patches.add(y, x0, x1, 0.45, t);
    fine.add(y, x0, x1, 0.25, t);
  });
}
