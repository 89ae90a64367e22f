/**
 * Which photo's range counts, when each photo's best ranges of a channel are put in order: 0 the narrowest, 1 the widest.
 * By stage of the network; found with search.ts by their effect on mattes (docs/research/0163).
 *
 * In the decoder photos whose subject fills the frame have activations fifty times as large as others, in places where
 * the matte is settled anyway: clipping them costs nothing, holding them costs every other photo its fineness. In the
 * deep half of the encoder a channel stands for something that few photos show; where they do, the matte hangs on it.
 */
export type Quantiles = Readonly<Record<string, number>>;

/** Of a stage that a network's quantiles do not name. */
export const USUAL_QUANTILE = 0.4;

const ISNET: Quantiles = { stage3: 1, stage4: 1, stage5: 0.9, stage6: 1 };

const U2NET: Quantiles = {
  ...{ stage1: 0.6, stage2: 0.8, stage3: 0.8, stage4: 0.8, stage5: 1, stage6: 0.6 },
  ...{ stage5d: 0.4, stage4d: 0.8, stage3d: 0.9, stage2d: 0.4, stage1d: 0.8 },
};

/** By network. */
export const QUANTILES: Readonly<Record<string, Quantiles>> = { isnet: ISNET, u2net: U2NET };
