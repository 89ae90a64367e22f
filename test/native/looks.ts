/** Statistics of an image as native/classify/statistics.h defines them, pixel by pixel in double precision. */

type Pixel = readonly [number, number, number];

export interface Thumb {
  readonly side: number;
  /** Row by row. */
  readonly pixels: readonly Pixel[];
}

const clamp = (value: number, most: number) => Math.min(Math.max(value, 0), most);

/** Rounded means of 2 x 2 values of planes of `side` x `side`, clamped to bytes. */
export function thumbOf(planes: Float32Array, side: number): Thumb {
  const half = Math.floor(side / 2);
  const value = (c: number, x: number, y: number) => clamp(planes[(c * side + y) * side + x] ?? 0, 255);
  const mean = (c: number, x: number, y: number) =>
    (value(c, x, y) + value(c, x + 1, y) + value(c, x, y + 1) + value(c, x + 1, y + 1)) / 4;
  const pixels = Array.from({ length: half * half }, (_, at): Pixel => {
    const [x, y] = [2 * (at % half), 2 * Math.floor(at / half)];
    return [
      Math.floor(mean(0, x, y) + 0.5),
      Math.floor(mean(1, x, y) + 0.5),
      Math.floor(mean(2, x, y) + 0.5),
    ];
  });
  return { side: half, pixels };
}

export function borderOf({ side, pixels }: Thumb) {
  const width = Math.max(1, Math.floor(side * 0.02));
  const outermost = pixels.filter((_, at) => {
    const [x, y] = [at % side, Math.floor(at / side)];
    return Math.min(x, y, side - 1 - x, side - 1 - y) < width;
  });
  const median = ([0, 1, 2] as const).map((c) => {
    const values = outermost.map((pixel) => pixel[c]).sort((a, b) => a - b);
    return values[Math.ceil(values.length / 2) - 1] ?? 0;
  });
  const near = (pixel: Pixel) => pixel.every((value, c) => Math.abs(value - (median[c] ?? 0)) <= 16);
  const share = (of: readonly Pixel[]) => of.filter(near).length / of.length;
  return {
    borderUniform: share(outermost),
    borderLight: Math.min(...median) / 255,
    borderDark: 1 - Math.max(...median) / 255,
    background: share(pixels),
  };
}

const chromaOf = (pixel: Pixel) => Math.max(...pixel) - Math.min(...pixel);

/** BT.601, in whole levels. */
const lumaOf = ([r, g, b]: Pixel) => Math.floor((77 * r + 150 * g + 29 * b) / 256 + 0.5);

/** The nearest of six hues: 0 red, 1 yellow, and so on; meaningless for grays. */
function hueOf(pixel: Pixel): number {
  const [r, g, b] = pixel;
  const chroma = chromaOf(pixel);
  if (chroma === 0) return 0;
  const most = Math.max(r, g, b);
  const sixths = most === r ? (g - b) / chroma : most === g ? 2 + (b - r) / chroma : 4 + (r - g) / chroma;
  return (Math.floor(sixths + 0.5) + 6) % 6;
}

/** Statistics of the pixels, weighted by `weight`. */
function describe({ side, pixels }: Thumb, weight: (at: number) => number) {
  const total = pixels.reduce((sum, _, at) => sum + weight(at), 0);
  const mean = (of: (pixel: Pixel, at: number) => number) =>
    pixels.reduce((sum, pixel, at) => sum + weight(at) * of(pixel, at), 0) / total;
  const share = (holds: (pixel: Pixel, at: number) => boolean) => mean((pixel, at) => +holds(pixel, at));
  const between = (a: Pixel, b: Pixel) =>
    Math.abs(a[0] - b[0]) + Math.abs(a[1] - b[1]) + Math.abs(a[2] - b[2]);
  const steps = pixels.map((pixel, at) => {
    const right = at % side < side - 1 ? pixels[at + 1] : pixel;
    return Math.max(between(pixel, right ?? pixel), between(pixel, pixels[at + side] ?? pixel));
  });
  const step = (holds: (size: number) => boolean) => share((_, at) => holds(steps[at] ?? 0));
  const colours = new Map<number, number>();
  pixels.forEach(([r, g, b], at) => {
    const colour = (r >> 4) * 256 + (g >> 4) * 16 + (b >> 4);
    colours.set(colour, (colours.get(colour) ?? 0) + weight(at) / total);
  });
  const shares = [...colours.values()].sort((a, b) => b - a);
  const commonest = (count: number) => shares.slice(0, count).reduce((a, b) => a + b, 0);
  const light = mean(lumaOf);
  const ofHue = (hue: number) => mean((pixel) => (hueOf(pixel) === hue ? chromaOf(pixel) / 255 : 0));
  return {
    flat: step((size) => size <= 2),
    smooth: step((size) => size <= 6),
    texture: step((size) => size >= 6 && size <= 60),
    edge: step((size) => size > 96),
    sharp: step((size) => size > 200),
    colour1: commonest(1),
    colour4: commonest(4),
    colour16: commonest(16),
    entropy: shares.reduce((sum, p) => (p > 0 ? sum - p * Math.log2(p) : sum), 0) / Math.log2(4096),
    saturation: mean((pixel) => chromaOf(pixel) / 255),
    saturated: share((pixel) => chromaOf(pixel) > 100),
    gray: share((pixel) => chromaOf(pixel) < 6),
    lightness: light / 255,
    contrast: Math.sqrt(mean((pixel) => (lumaOf(pixel) - light) ** 2)) / 128,
    red: ofHue(0),
    yellow: ofHue(1),
    green: ofHue(2),
    cyan: ofHue(3),
    blue: ofHue(4),
    magenta: ofHue(5),
  };
}

/** The subject and the rest; a region of less than 1 / 2048 of the image is described by the whole of it. */
export function regionsOf(thumb: Thumb, weights: Float32Array) {
  const inside = (at: number) => Math.floor(clamp(weights[at] ?? 0, 1) * 255 + 0.5) / 255;
  const outside = (at: number) => 1 - inside(at);
  const seen = (weight: (at: number) => number) => {
    const sum = thumb.pixels.reduce((total, _, at) => total + weight(at), 0);
    return sum * 2048 >= thumb.pixels.length * (1 - 1e-12) ? weight : () => 1;
  };
  return { inside: describe(thumb, seen(inside)), outside: describe(thumb, seen(outside)) };
}
