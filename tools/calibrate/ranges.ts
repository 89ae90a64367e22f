/**
 * Quantiles over the photos' best ranges of a channel, by stage of the network: 0 the narrowest range, 1 the widest.
 * Chosen with search.ts by their effect on mattes (decision 0204).
 *
 * In the decoder, photos whose subject fills the frame have activations fifty times as large as others, at positions
 * whose alpha is certain: clipping them costs nothing, while representing them would coarsen the steps for all other
 * photos. In the deep half of the encoder a channel responds to features that few photos have, and on those photos the
 * matte depends on it.
 */
export type Quantiles = Readonly<Record<string, number>>;

/** The default of stages that a network's quantiles do not name. */
export const USUAL_QUANTILE = 0.4;

const ISNET: Quantiles = { stage3: 1, stage4: 1, stage5: 0.9, stage6: 1 };

const U2NET: Quantiles = {
  ...{ stage1: 0.6, stage2: 0.8, stage3: 0.8, stage4: 0.8, stage5: 1, stage6: 0.6 },
  ...{ stage5d: 0.4, stage4d: 0.8, stage3d: 0.9, stage2d: 0.4, stage1d: 0.8 },
};

/** Quantiles by the network's name. */
export const QUANTILES: Readonly<Record<string, Quantiles>> = { isnet: ISNET, u2net: U2NET };
