import {
  displayP3,
  type Gamut,
  rgbProfile,
  srgbGamut,
  srgbTransfer,
  type Transfer,
} from './matrixProfile.ts';

/** How a file codes its colours (ITU-T H.273): a PNG in `cICP`, a HEIC or an AVIF in `nclx`. */
export interface CodePoints {
  readonly primaries: number;
  readonly transfer: number;
}

/** ColourPrimaries of ITU-T H.273, table 2. */
export const gamuts: Readonly<Record<number, Gamut>> = {
  1: srgbGamut,
  4: { red: [0.67, 0.33], green: [0.21, 0.71], blue: [0.14, 0.08], white: [0.31, 0.316] },
  5: { red: [0.64, 0.33], green: [0.29, 0.6], blue: [0.15, 0.06], white: srgbGamut.white },
  6: { red: [0.63, 0.34], green: [0.31, 0.595], blue: [0.155, 0.07], white: srgbGamut.white },
  7: { red: [0.63, 0.34], green: [0.31, 0.595], blue: [0.155, 0.07], white: srgbGamut.white },
  9: { red: [0.708, 0.292], green: [0.17, 0.797], blue: [0.131, 0.046], white: srgbGamut.white },
  11: { red: [0.68, 0.32], green: [0.265, 0.69], blue: [0.15, 0.06], white: [0.314, 0.351] },
  12: displayP3,
};

const television: Transfer = (v) => (v < 0.081 ? v / 4.5 : ((v + 0.099) / 1.099) ** (1 / 0.45));

/** White of a page in HDR, and where light that is brighter begins to be compressed (ITU-R BT.2408, section 2.1). */
const whiteNits = 203;
const knee = 0.7;

/** Light of a display in cd/m² to that of an SDR one: equal up to the knee, then approaching white. */
function toneMapped(nits: number): number {
  const light = nits / whiteNits;
  return light <= knee ? light : 1 - (1 - knee) * Math.exp((knee - light) / (1 - knee));
}

/** SMPTE ST 2084. */
const perceptual: Transfer = (v) => {
  const root = v ** (1 / 78.84375);
  return toneMapped(
    10_000 * (Math.max(0, root - 0.8359375) / (18.8515625 - 18.6875 * root)) ** (1 / 0.1593017578125),
  );
};

/** ITU-R BT.2100, shown on a display of 1000 cd/m², whose system gamma is applied to each channel. */
const hybrid: Transfer = (v) => {
  const scene = v <= 0.5 ? v ** 2 / 3 : (Math.exp((v - 0.55991073) / 0.17883277) + 0.28466892) / 12;
  return toneMapped(1000 * scene ** 1.2);
};

/** TransferCharacteristics of ITU-T H.273, table 3. */
export const transfers: Readonly<Record<number, Transfer>> = {
  1: television,
  4: (v) => v ** 2.2,
  5: (v) => v ** 2.8,
  6: television,
  8: (v) => v,
  13: srgbTransfer,
  14: television,
  15: television,
  16: perceptual,
  18: hybrid,
};

/**
 * The profile of the colours of a HEIC or an AVIF without one; undefined for sRGB and for code points that are unknown. The curves of television,
 * which cameras state for what displays show as sRGB, count as that.
 */
export function codedProfile({ primaries, transfer }: CodePoints): Buffer | undefined {
  const stated = transfers[transfer] ?? television;
  const curve = stated === television ? srgbTransfer : stated;
  const gamut = gamuts[primaries] ?? srgbGamut;
  return gamut === srgbGamut && curve === srgbTransfer ? undefined : rgbProfile(gamut, curve);
}
