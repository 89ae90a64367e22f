/**
 * How a network's measure of its own uncertainty becomes the chance that somebody has to look at the result: fitted on photos
 * with masks, checked on others (docs/benchmarks.md, "Uncertainty").
 */
export interface UncertaintyCurve {
  /** The chance for the surest results: what a network is sure and wrong about. */
  readonly floor: number;
  /** The measure at which half of the rest is reached. */
  readonly middle: number;
  /** How steeply the chance rises there. */
  readonly steepness: number;
}

/** The score of results whose network has no curve. */
export const noScore = -1;

/**
 * The published score of a result: the chance, 0 to 1 in thousandths, that it overlaps with what a person would cut out by less
 * than 0.9 (IoU); -1 where no curve is known.
 * @param uncertainty of the engine's answer (MatteResult.uncertainty)
 */
export function uncertaintyScore(curve: UncertaintyCurve | undefined, uncertainty: number): number {
  if (!curve) return noScore;
  const { floor, middle, steepness } = curve;
  const chance = floor + (1 - floor) / (1 + (middle / Math.max(uncertainty, 1e-6)) ** steepness);
  return Math.round(1000 * chance) / 1000;
}
