import { uncertainBand } from './band.js';
import { boundaryIou } from './boundary.js';
import { colourError, visibleError } from './colour.js';
import { connectivityError } from './connectivity.js';
import { errors } from './errors.js';
import { gradientError } from './gradient.js';
import { regionScores } from './regions.js';
import { structure } from './structure.js';
import { weightedF } from './weighted.js';

/**
 * Everything about one matte. `rgb` and `foreground` (RGB) are given where colours are known.
 * @param {{matte: Uint8Array, rgb?: Uint8Array, truth: Uint8Array, foreground?: Uint8Array, band?: Uint8Array,
 *   width: number, height: number}} what `band`: 1 where errors of edges are counted, else found from the truth
 */
export function score({ matte, rgb, truth, foreground, band: given, width, height }) {
  const size = { width, height };
  const band = given ?? uncertainBand(truth, size);
  const { curve, maxF, adaptiveF, meanE } = regionScores(matte, truth);
  const known = foreground && { alpha: truth, foreground };
  return {
    ...errors(matte, truth, band, size),
    grad: gradientError(matte, truth, band, size),
    conn: connectivityError(matte, truth, band, size),
    maxF,
    adaptiveF,
    meanE,
    curve: Array.from(curve),
    weightedF: weightedF(matte, truth, size),
    structure: structure(matte, truth, size),
    boundaryIou: boundaryIou(matte, truth, size),
    bandShare: mean(band),
    ...(known &&
      rgb && {
        colour: colourError({ rgb, alpha: matte }, known).error,
        visible: visibleError({ rgb, alpha: matte }, known, band),
      }),
  };
}

const mean = (mask) => mask.reduce((sum, value) => sum + value, 0) / mask.length;
