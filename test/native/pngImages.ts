/** RGBA images with known pixels; `stride` bytes from row to row. */
export interface Image {
  readonly data: Buffer;
  readonly width: number;
  readonly height: number;
  readonly stride: number;
}

type Paint = (x: number, y: number) => readonly [number, number, number, number];

/** Pseudo-random numbers 0..255, the same in every run. */
export function noise(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 24;
  };
}

export function paint(width: number, height: number, at: Paint, stride = width * 4): Image {
  const data = Buffer.alloc(stride * height, 0xa5);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) data.set(at(x, y), y * stride + 4 * x);
  }
  return { data, width, height, stride };
}

export function noiseImage(width: number, height: number, stride?: number): Image {
  const next = noise(width * 31 + height);
  return paint(width, height, () => [next(), next(), next(), next()], stride);
}

/** Smooth shading, waves of several sizes and sensor noise: compresses about as well as a photo. */
export function photoImage(width: number, height: number): Image {
  const next = noise(7);
  return paint(width, height, (x, y) => {
    const light = 90 + 60 * Math.sin(x / 97 + y / 143) + 30 * Math.sin(x / 11) * Math.cos(y / 17);
    const grain = next() / 42;
    return [light + grain, light * 0.9 + grain + 10, light * 0.7 + grain + 20, 255];
  });
}

/** A photo whose background is transparent black, with a soft rim and single hairs across it. */
export function cutImage(width: number, height: number): Image {
  const photo = photoImage(width, height);
  return paint(width, height, (x, y) => {
    const dx = (2 * x) / width - 1;
    const dy = (2 * y) / height - 1;
    const radius = Math.hypot(dx, dy);
    const angle = Math.atan2(dy, dx);
    const hair = Math.abs(Math.sin(angle * 40 + radius * 9)) < 0.08 && radius < 0.95 ? 120 : 0;
    const rim = Math.round(255 * Math.min(1, Math.max(0, (0.7 - radius) * 30)));
    const alpha = Math.max(rim, hair);
    const i = y * photo.stride + 4 * x;
    const [r = 0, g = 0, b = 0] = photo.data.subarray(i, i + 3);
    return alpha === 0 ? [0, 0, 0, 0] : [r, g, b, alpha];
  });
}

export const flatImage = (width: number, height: number): Image =>
  paint(width, height, () => [12, 200, 90, 255]);

export const clearImage = (width: number, height: number): Image => paint(width, height, () => [0, 0, 0, 0]);

export const gradientImage = (width: number, height: number): Image =>
  paint(width, height, (x, y) => [x, y, x + y, 255 - ((x * 3 + y) % 256)].map((v) => v & 255) as never);

/** A drawing: few colours, hard edges, a pattern that repeats in both directions. */
export const drawingImage = (width: number, height: number): Image =>
  paint(width, height, (x, y) => {
    if ((x >> 3) % 5 === 0 && (y >> 2) % 7 === 0) return [255, 255, 255, 255];
    return ((x * y) >> 6) % 11 === 0 ? [200, 30, 30, 255] : [20, 40, 90, 255];
  });

/** The pixels an exact reader finds in the file. */
export function expectedPixels({ data, width, height, stride }: Image, alphaOnly: boolean): Buffer {
  const channels = alphaOnly ? 1 : 4;
  const pixels = Buffer.alloc(width * height * channels);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const from = y * stride + 4 * x;
      if (alphaOnly) pixels[y * width + x] = data[from + 3] ?? 0;
      else data.copy(pixels, (y * width + x) * 4, from, from + 4);
    }
  }
  return pixels;
}
