import fc from 'fast-check';
import type { Image, MatteSummary } from './kernelsAddon.ts';

export type Pixel = readonly [number, number, number, number];

/** Pseudo-random numbers in [0, 1), the same in every run. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

/** An image whose row padding is 0xa5, so that a kernel that reads or writes there is detected. */
export function paint(
  width: number,
  height: number,
  at: (x: number, y: number) => Pixel,
  stride = width * 4,
): Image {
  const data = new Uint8Array(stride * (height - 1) + width * 4).fill(0xa5);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) data.set(at(x, y), y * stride + x * 4);
  }
  return { data, width, height, stride };
}

interface Matted {
  readonly out: Image;
  readonly summary: MatteSummary;
}

/** Whether two runs gave the same bytes and the same summary. */
export const sameResult = (one: Matted, other: Matted): boolean =>
  Buffer.from(one.out.data).equals(other.out.data) &&
  JSON.stringify(one.summary) === JSON.stringify(other.summary);

export const copy = (image: Image): Image => ({ ...image, data: image.data.slice() });

export const whole = (image: { width: number; height: number }) => ({
  left: 0,
  top: 0,
  width: image.width,
  height: image.height,
});

export function pixel(image: Image, x: number, y: number): number[] {
  const at = y * image.stride + x * 4;
  return [...image.data.subarray(at, at + 4)];
}

/** The pixels without row padding. */
export function packed(image: Image): Uint8Array {
  const row = image.width * 4;
  const out = new Uint8Array(row * image.height);
  for (let y = 0; y < image.height; y++) {
    out.set(image.data.subarray(y * image.stride, y * image.stride + row), y * row);
  }
  return out;
}

/** Whether no byte between the rows was written. */
export function paddingIntact(image: Image): boolean {
  for (let y = 0; y + 1 < image.height; y++) {
    const padding = image.data.subarray(y * image.stride + image.width * 4, (y + 1) * image.stride);
    if (padding.some((byte) => byte !== 0xa5)) return false;
  }
  return true;
}

/** Greatest difference of packed images: of alpha and of premultiplied colour, in levels. */
export function difference(a: Uint8Array, b: Uint8Array): number {
  let most = a.length === b.length ? 0 : Number.POSITIVE_INFINITY;
  for (let i = 0; i < a.length; i += 4) {
    const [alphaA, alphaB] = [a[i + 3] ?? 0, b[i + 3] ?? 0];
    most = Math.max(most, Math.abs(alphaA - alphaB));
    for (let c = i; c < i + 3; c++) {
      most = Math.max(most, Math.abs((a[c] ?? 0) * alphaA - (b[c] ?? 0) * alphaB) / 255);
    }
  }
  return most;
}

const ALPHAS = {
  opaque: () => 255,
  empty: () => 0,
  any: (next: () => number) => Math.floor(next() * 256),
  // Long runs of each kind, so that whole tiles are opaque or transparent beside mixed ones.
  runs: (next: () => number, x: number, y: number) =>
    [255, 255, 0, Math.floor(next() * 256)][Math.floor((x + 37 * y) / 700) % 4] ?? 0,
} as const;

/** Noise of any size and row padding, with every sort of alpha. */
export const anyImage = (maxWidth = 90, maxHeight = 70) =>
  fc
    .record({
      width: fc.integer({ min: 1, max: maxWidth }),
      height: fc.integer({ min: 1, max: maxHeight }),
      padding: fc.constantFrom(0, 0, 1, 3, 4, 60),
      alpha: fc.constantFrom<keyof typeof ALPHAS>('opaque', 'empty', 'any', 'runs'),
      seed: fc.nat(),
    })
    .map(({ width, height, padding, alpha, seed }) => {
      const next = random(seed);
      const byte = () => Math.floor(next() * 256);
      return paint(
        width,
        height,
        (x, y) => [byte(), byte(), byte(), ALPHAS[alpha](next, x, y)],
        width * 4 + padding,
      );
    });
