/**
 * Which photo's range counts, when each photo's best ranges of a channel are put in order: 0 the narrowest, 1 the widest.
 * By stage of the network; found with search.ts by their effect on mattes (docs/research/0163).
 *
 * In the decoder photos whose subject fills the frame have activations fifty times as large as others, in places where
 * the matte is settled anyway: clipping them costs nothing, holding them costs every other photo its fineness. In the
 * deep half of the encoder a channel stands for something that few photos show; where they do, the matte hangs on it.
 */
export type Quantiles = Readonly<Record<string, number>>;

export const STAGES = [
  ...['conv_in', 'stage1', 'stage2', 'stage3', 'stage4', 'stage5', 'stage6'],
  ...['stage5d', 'stage4d', 'stage3d', 'stage2d', 'stage1d'],
] as const;

/** Of a stage that RANGE_QUANTILES does not name. */
export const USUAL_QUANTILE = 0.4;

const RANGE_QUANTILES: Quantiles = { stage3: 1, stage4: 1, stage5: 0.9, stage6: 1 };

/** Of a tensor: its name begins with its stage. */
export const quantileOf = (tensor: string, quantiles: Quantiles): number =>
  quantiles[tensor.split('/')[1] ?? ''] ?? USUAL_QUANTILE;

/**
 * Convolutions that stay in floats: the two that make the deepest map and the one that reads it, so that it is never
 * rounded. Of all that was tried the most for its time (docs/research/0164).
 */
const FLOAT_CONVOLUTIONS = [
  '/stage6/rebnconvin/conv_s1/Conv',
  '/stage6/rebnconv1d/conv_s1/Conv',
  '/stage5d/rebnconvin/conv_s1/Conv',
] as const;

export interface Choice {
  readonly quantiles: Quantiles;
  /** Names of the convolutions that stay in floats. */
  readonly floats: readonly string[];
}

export const CHOICE: Choice = { quantiles: RANGE_QUANTILES, floats: FLOAT_CONVOLUTIONS };
