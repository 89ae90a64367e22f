import { deflateSync } from 'node:zlib';
import { gamuts, transfers } from '../codePoints.ts';
import {
  type Chromaticity,
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
function coded(data: Buffer): Space | undefined {
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
  const codePoints = found.get('cICP');
  const space = codePoints && coded(codePoints.data);
  if (space) return space;
  if (found.has('iCCP') || found.has('sRGB')) return undefined;
  return measured(found.get('gAMA')?.data, found.get('cHRM')?.data);
}

/**
 * A PNG whose colours a decoder understands: the same bytes, unless its chunks state other ones than sRGB. `converts`: its
 * colours are converted to sRGB by the profile in `bytes`.
 */
export function statedColour(file: Uint8Array) {
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
