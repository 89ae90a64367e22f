import type { SizeName } from '../image/size.ts';
import type { Dimensions } from '../image/types.ts';

/** CUTOUT_PROFILE: quality against time; figures are in docs/benchmarks.md, "Profiles". */
export type ProfileName = 'fast' | 'balanced' | 'best';

export interface Profile {
  /** Fraction of the network's usual input sides, for previews and for larger results. */
  readonly previewInput: number;
  readonly input: number;
  /** PNG compression effort: 1 is fastest, 9 gives the smallest files (PngOptions.effort). */
  readonly pngEffort: number;
}

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  fast: { previewInput: 0.5, input: 0.625, pngEffort: 1 },
  balanced: { previewInput: 0.625, input: 1, pngEffort: 3 },
  best: { previewInput: 1, input: 1, pngEffort: 6 },
};

/** The usual input size of a network, in pixels. */
export interface NetworkSize extends Dimensions {
  /** Sides of other sizes are multiples of this; 0 or absent: the network has one size. */
  readonly sizeStep?: number;
}

/** Input sides are not reduced below this: small networks were made for it, and their runs are short anyway. */
const smallestSide = 320;

/** Input size of the network for a result of this size; never above its usual one. The result's size: image/size.ts. */
export function networkInput(profile: Profile, size: SizeName, network: NetworkSize): Dimensions {
  const { width, height, sizeStep = 0 } = network;
  const part = size === 'preview' ? profile.previewInput : profile.input;
  if (sizeStep === 0 || part === 1) return { width, height };
  const steps = (side: number) => Math.round(side / sizeStep);
  const least = Math.ceil(smallestSide / sizeStep);
  const side = (usual: number) => Math.min(usual, Math.max(least, steps(usual * part)) * sizeStep);
  return { width: side(width), height: side(height) };
}
