import type { SizeName } from '../image/size.ts';
import type { Dimensions } from '../image/types.ts';

/** CUTOUT_PROFILE. What is traded for time; the figures are in docs/benchmarks.md, "Profiles". */
export type ProfileName = 'fast' | 'balanced' | 'best';

export interface Profile {
  /** Part of the network's usual sides that the image is given to it at, for a preview and for larger results. */
  readonly previewInput: number;
  readonly input: number;
  /** Whether edges and their colours are worked out from the image (MattePlan.refine). */
  readonly refine: 'on' | 'off';
  /** 1 fastest, 9 smallest (PngOptions.effort). */
  readonly pngEffort: number;
}

export const PROFILES: Readonly<Record<ProfileName, Profile>> = {
  fast: { previewInput: 0.5, input: 0.625, refine: 'on', pngEffort: 1 },
  balanced: { previewInput: 0.625, input: 1, refine: 'on', pngEffort: 3 },
  best: { previewInput: 1, input: 1, refine: 'on', pngEffort: 6 },
};

/** The usual size of a network's input. */
export interface NetworkSize extends Dimensions {
  /** What sides of another size are multiples of; 0 or absent: the network has one size. */
  readonly sizeStep?: number;
}

/** Size at which the network is run for a result of this class. Never above its usual one. */
export function networkInput(profile: Profile, size: SizeName, network: NetworkSize): Dimensions {
  const { width, height, sizeStep = 0 } = network;
  const part = size === 'preview' ? profile.previewInput : profile.input;
  if (sizeStep === 0 || part === 1) return { width, height };
  const side = (usual: number) =>
    Math.min(usual, Math.max(sizeStep, Math.round((usual * part) / sizeStep) * sizeStep));
  return { width: side(width), height: side(height) };
}
