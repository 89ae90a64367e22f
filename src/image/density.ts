import { chunksBeforeData } from './container/png.ts';
import { TiffReader } from './container/tiff.ts';
import type { Density, InputFormat } from './types.ts';

const metresPerInch = 0.0254;

const perInch = (value: number) => Math.round(value / metresPerInch);
const perCentimetre = (value: number) => Math.round(value * 100);

function density(x: number, y: number): Density | undefined {
  const legal = (value: number) => Number.isFinite(value) && value >= 1 && value <= 0x7fffffff;
  return legal(x) && legal(y) ? { x, y } : undefined;
}

/** JFIF APP0, the first segment: unit 1 is dots per inch, 2 per centimetre, 0 no resolution. */
function fromJfif(bytes: Buffer): Density | undefined {
  if (bytes.length < 18 || bytes.readUInt16BE(2) !== 0xffe0 || bytes.toString('latin1', 6, 11) !== 'JFIF\0')
    return;
  const convert = { 1: perInch, 2: perCentimetre }[bytes.readUInt8(13)];
  if (convert) return density(convert(bytes.readUInt16BE(14)), convert(bytes.readUInt16BE(16)));
  return;
}

/** PNG pHYs, which precedes IDAT: unit 1 is the metre, 0 no resolution. */
function fromPhys(bytes: Buffer): Density | undefined {
  for (const { type, data } of chunksBeforeData(bytes))
    if (type === 'pHYs' && data.length === 9)
      return data.readUInt8(8) === 1 ? density(data.readUInt32BE(0), data.readUInt32BE(4)) : undefined;
  return;
}

/** Tags XResolution, YResolution (rationals) and ResolutionUnit of IFD 0 of a TIFF structure (TIFF 6.0, section 2). */
function fromTiff(tiff: Uint8Array): Density | undefined {
  const file = new TiffReader(tiff);
  const rational = (at: number) => file.number(at, 4) / file.number(at + 4, 4);
  const ifd = file.number(4, 4);
  let [x, y, unit] = [Number.NaN, Number.NaN, 2];
  for (let entry = ifd + 2, left = file.u16(ifd); left > 0; entry += 12, left -= 1) {
    const tag = file.u16(entry);
    if (tag === 0x011a) x = rational(file.number(entry + 8, 4));
    else if (tag === 0x011b) y = rational(file.number(entry + 8, 4));
    else if (tag === 0x0128) unit = file.u16(entry + 8);
  }
  const convert = { 2: perInch, 3: perCentimetre }[unit];
  return convert && density(convert(x), convert(y));
}

/**
 * Resolution stated in the file, from JFIF or pHYs, else from EXIF; undefined if it states none. (libvips
 * reports 72 dpi for many files without any.) `exif` is the block as sharp returns it, with its `Exif\0\0`.
 */
export function readDensity(file: Uint8Array, format: InputFormat, exif?: Buffer): Density | undefined {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const read = { jpeg: fromJfif, png: fromPhys, tiff: fromTiff }[format as string];
  const own = read?.(bytes);
  if (own || !exif) return own;
  return fromTiff(exif.toString('latin1', 0, 6) === 'Exif\0\0' ? exif.subarray(6) : exif);
}
