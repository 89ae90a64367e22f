import sharp from 'sharp';

/** Agreement of two mattes of the same image. */
export interface Agreement {
  /** Mean absolute difference of alpha, 0..255. */
  readonly meanDifference: number;
  /** Share of pixels whose alpha differs by more than a half, 0..1. */
  readonly opposed: number;
  /** Of the pixels with alpha of at least 128: common to both / in either. 1 if both are empty. */
  readonly overlap: number;
}

export interface Matte {
  readonly alpha: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** The alpha channel of a PNG. */
export async function matteOf(png: Buffer): Promise<Matte> {
  const { data, info } = await sharp(png, { limitInputPixels: false })
    .ensureAlpha()
    .extractChannel(3)
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { alpha: data, width: info.width, height: info.height };
}

/** Throws if the sizes differ. */
export function agreement(a: Matte, b: Matte): Agreement {
  if (a.width !== b.width || a.height !== b.height)
    throw new Error(`mattes of ${a.width}x${a.height} and ${b.width}x${b.height}`);
  let difference = 0;
  let opposed = 0;
  let both = 0;
  let either = 0;
  for (let i = 0; i < a.alpha.length; i++) {
    const [one = 0, other = 0] = [a.alpha[i], b.alpha[i]];
    const apart = Math.abs(one - other);
    difference += apart;
    if (apart > 127) opposed++;
    const [in1, in2] = [one >= 128, other >= 128];
    if (in1 && in2) both++;
    if (in1 || in2) either++;
  }
  const count = a.alpha.length;
  return {
    meanDifference: difference / count,
    opposed: opposed / count,
    overlap: either === 0 ? 1 : both / either,
  };
}

/** Absolute differences as a gray image, 0 black. */
export function differenceMap(a: Matte, b: Matte): Buffer {
  const map = Buffer.alloc(a.alpha.length);
  for (let i = 0; i < map.length; i++) map[i] = Math.abs((a.alpha[i] ?? 0) - (b.alpha[i] ?? 0));
  return map;
}
