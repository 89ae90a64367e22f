import { deflateSync } from 'node:zlib';
import {
  type Chromaticity,
  displayP3,
  type Gamut,
  grayProfile,
  rgbProfile,
  srgbGamut,
  srgbTransfer,
  type Transfer,
} from '../matrixProfile.ts';
import { chunksBeforeData, type PngChunk, pngChunk } from './png.ts';

/**
 * The colours that a PNG states in its chunks cICP, gAMA and cHRM, which libvips does not read, as an ICC profile, which
 * it does. As browsers do (PNG, third edition, section 4.3): cICP counts before iCCP, iCCP before sRGB, sRGB before gAMA
 * and cHRM. An image that states nothing is sRGB.
 */

/** ColourPrimaries of ITU-T H.273, table 2. */
const gamuts: Readonly<Record<number, Gamut>> = {
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
const transfers: Readonly<Record<number, Transfer>> = {
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

/** Values from 16 to 235 of 255. */
const narrow =
  (transfer: Transfer): Transfer =>
  (v) =>
    transfer(Math.min(1, Math.max(0, (v * 255 - 16) / 219)));

const colourChunks = ['cICP', 'iCCP', 'sRGB', 'gAMA', 'cHRM'];

/** The chunks that state colours, the first of each type, and the header. */
function chunksOf(bytes: Buffer): ReadonlyMap<string, PngChunk> {
  const found = new Map<string, PngChunk>();
  for (const chunk of chunksBeforeData(bytes)) if (!found.has(chunk.type)) found.set(chunk.type, chunk);
  return found;
}

interface Space {
  readonly gamut: Gamut;
  readonly transfer: Transfer;
  /** Whether nothing has to be converted. */
  readonly isSrgb: boolean;
}

/** Undefined for what H.273 leaves open and for values in YCbCr, which a PNG cannot have: the next chunk counts. */
function codePoints(data: Buffer): Space | undefined {
  const [primaries = 0, curve = 0, matrix, range] = data;
  const gamut = gamuts[primaries];
  const transfer = transfers[curve];
  if (!gamut || !transfer || matrix !== 0) return undefined;
  return {
    gamut,
    transfer: range === 0 ? narrow(transfer) : transfer,
    isSrgb: primaries === 1 && curve === 13 && range !== 0,
  };
}

/** Deviations that nobody sees: libpng's for gamma, and rounding in the chunk for chromaticities. */
const gammaTolerance = 0.05;
const chromaticityTolerance = 0.002;

const near = (one: Chromaticity, other: Chromaticity): boolean =>
  one.every((value, i) => Math.abs(value - (other[i] ?? 0)) <= chromaticityTolerance);

function measured(gamma: Buffer | undefined, chromaticities: Buffer | undefined): Space | undefined {
  const stated = gamma && gamma.length >= 4 ? gamma.readUInt32BE(0) / 100_000 : undefined;
  // 0 and values beyond any display are no gamma.
  const exponent = stated !== undefined && stated >= 0.05 && stated <= 20 ? 1 / stated : undefined;
  const isUsual = exponent === undefined || Math.abs(exponent / 2.2 - 1) < gammaTolerance;
  let gamut = srgbGamut;
  if (chromaticities && chromaticities.length >= 32) {
    const point = (i: number): Chromaticity => [
      chromaticities.readUInt32BE(8 * i) / 100_000,
      chromaticities.readUInt32BE(8 * i + 4) / 100_000,
    ];
    const given: Gamut = { white: point(0), red: point(1), green: point(2), blue: point(3) };
    const differs = (['white', 'red', 'green', 'blue'] as const).some(
      (name) => !near(given[name], srgbGamut[name]),
    );
    if (differs) gamut = given;
  }
  if (exponent === undefined && gamut === srgbGamut) return undefined;
  return {
    gamut,
    transfer: isUsual || exponent === undefined ? srgbTransfer : (v) => v ** exponent,
    isSrgb: isUsual && gamut === srgbGamut,
  };
}

/** Undefined if the file's own profile counts, or nothing is stated. */
function spaceOf(found: ReadonlyMap<string, PngChunk>): Space | undefined {
  const coded = found.get('cICP');
  const space = coded && codePoints(coded.data);
  if (space) return space;
  if (found.has('iCCP') || found.has('sRGB')) return undefined;
  return measured(found.get('gAMA')?.data, found.get('cHRM')?.data);
}

interface Stated {
  /** The file for a decoder. */
  readonly bytes: Uint8Array;
  /** Whether its colours are converted to sRGB by the profile in `bytes`. */
  readonly converts: boolean;
}

/** A PNG whose colours a decoder understands: the same bytes, unless its chunks state other ones than sRGB. */
export function statedColour(file: Uint8Array): Stated {
  const same = { bytes: file, converts: false };
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const found = chunksOf(bytes);
  const header = found.get('IHDR');
  const space = header && spaceOf(found);
  if (!space) return same;
  // Beside code points of sRGB a profile does not count.
  if (space.isSrgb && !found.has('iCCP')) return same;
  const isGray = ((header.data[9] ?? 0) & 2) === 0;
  const profile = isGray ? grayProfile(space.transfer) : rgbProfile(space.gamut, space.transfer);
  if (!space.isSrgb && !profile) return same;
  const removed = [...found.values()].filter(({ type }) => colourChunks.includes(type));
  const pieces = [bytes.subarray(0, header.end)];
  if (!space.isSrgb && profile)
    pieces.push(pngChunk('iCCP', Buffer.from('png\0\0', 'latin1'), deflateSync(profile, { level: 1 })));
  let from = header.end;
  for (const chunk of removed) {
    pieces.push(bytes.subarray(from, chunk.from));
    from = chunk.end;
  }
  pieces.push(bytes.subarray(from));
  return { bytes: Buffer.concat(pieces), converts: !space.isSrgb };
}
