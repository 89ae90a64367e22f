import { cannotRead } from '../errors.ts';
import { tooManyParts, tooMuchWork } from './partLimits.ts';

/** Pages, one behind the other. */
const maxImages = 1000;
/** Tags of all images; one has some tens. */
const maxTags = 20_000;
/** Strips or tiles of one image: a strip for each row and channel is fewer. */
const maxStrips = 200_000;
/** Bytes of one pixel: four samples of 32 bits. `decodeBytes` counts with them. */
export const maxPixelBytes = 16;
/** Bytes of one tile, unpacked. */
const maxTileBytes = 64 * 1024 * 1024;

/** Bytes of all strips or tiles, for each byte of the file: several may be the same. */
const maxStripBytes = 2;

/** Pixels of all tiles, for each pixel of the image, and beside: tiles at its borders reach beyond it. */
const maxTilePixels = 4;
const spareTilePixels = 4 * 1024 * 1024;

/** Bytes of a value, by its type (TIFF 6.0, section 2; BigTIFF: 16 to 18). */
const typeBytes = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8] as const;

const [WIDTH, LENGTH, BITS, SAMPLES, STRIPS, STRIP_BYTES, TILE_WIDTH, TILE_LENGTH, TILES, TILE_BYTES] = [
  256, 257, 258, 277, 273, 279, 322, 323, 324, 325,
] as const;
const stripTags: ReadonlySet<number> = new Set([STRIPS, STRIP_BYTES, TILES, TILE_BYTES]);

/** Numbers of the file in its byte order, 0 beyond its end, with the widths of TIFF or BigTIFF. */
export class TiffReader {
  readonly length: number;
  readonly big: boolean;
  readonly #view: DataView;
  readonly #little: boolean;

  constructor(file: Uint8Array) {
    this.length = file.length;
    this.#view = new DataView(file.buffer, file.byteOffset, file.byteLength);
    this.#little = file[0] === 0x49;
    this.big = this.u16(2) === 43;
  }

  u16(at: number): number {
    return this.number(at, 2);
  }

  /** An offset or a count. */
  word(at: number): number {
    return this.number(at, this.big ? 8 : 4);
  }

  /** Reads a number of 1 to 8 bytes; 0 beyond the end. One of 8 is inexact above 2^53, which is beyond any file. */
  number(at: number, bytes: number): number {
    if (at + bytes > this.length) return 0;
    if (bytes === 8) return Number(this.#view.getBigUint64(at, this.#little));
    if (bytes === 4) return this.#view.getUint32(at, this.#little);
    return bytes === 2 ? this.#view.getUint16(at, this.#little) : this.#view.getUint8(at);
  }
}

/** `value`: the first of its values; `sum`: of all of them. */
function readTag(file: TiffReader, at: number) {
  const [tag, type, count] = [file.u16(at), file.u16(at + 2), file.word(at + 4)];
  const size = typeBytes[type] ?? 0;
  const field = at + (file.big ? 12 : 8);
  const bytes = count * size;
  const place = bytes <= (file.big ? 8 : 4) ? field : file.word(field);
  const sum = () => {
    let total = 0;
    for (let i = 0; i < count; i++) total += file.number(place + i * size, size);
    return total;
  };
  return { tag, count, bytes, value: file.number(place, size), sum };
}

/** Throws ImageError for an image of which one pixel or one tile is too large. */
function checkSizes(values: ReadonlyMap<number, number>): void {
  const of = (tag: number) => values.get(tag) ?? 1;
  const pixelBytes = (of(BITS) * of(SAMPLES)) / 8;
  if (pixelBytes > maxPixelBytes)
    throw cannotRead(`A pixel of the image has ${pixelBytes} bytes, at most ${maxPixelBytes} are read.`);
  if (of(TILE_WIDTH) * of(TILE_LENGTH) * pixelBytes > maxTileBytes)
    throw cannotRead(`A tile of the image has more than ${maxTileBytes / 2 ** 20} MB.`);
  if (!values.has(TILE_WIDTH)) return;
  const reached = (side: number, tile: number) => Math.ceil(of(side) / Math.max(1, of(tile))) * of(tile);
  const tilePixels = reached(WIDTH, TILE_WIDTH) * reached(LENGTH, TILE_LENGTH);
  if (tilePixels > maxTilePixels * of(WIDTH) * of(LENGTH) + spareTilePixels)
    throw cannotRead('The tiles of the image are larger than the image.');
}

/**
 * Throws ImageError for a TIFF of too many images, tags or strips: libtiff reads the tags of every image, with their
 * values, and stores those of the first; or of values, strips or tiles
 * that are longer than the file, because many tags name the same.
 */
export function checkTiff(tiff: Uint8Array): void {
  const file = new TiffReader(tiff);
  const { big, length } = file;
  const [countBytes, tagBytes, wordBytes] = big ? [8, 20, 8] : [2, 12, 4];
  let images = 0;
  let tags = 0;
  let values = 0;
  for (let at = file.word(big ? 8 : 4); at > 0 && at + countBytes <= length; ) {
    images += 1;
    if (images > maxImages) throw tooManyParts('images', maxImages);
    const count = file.number(at, countBytes);
    tags += count;
    if (tags > maxTags) throw tooManyParts('tags', maxTags);
    const sizes = new Map<number, number>();
    at += countBytes;
    for (const end = at + count * tagBytes; at < end && at + tagBytes <= length; at += tagBytes) {
      const tag = readTag(file, at);
      values += tag.bytes;
      if (stripTags.has(tag.tag) && tag.count > maxStrips) throw tooManyParts('strips', maxStrips);
      if (values > length) throw cannotRead('The values of the tags are longer than the file.');
      const lengths = tag.tag === STRIP_BYTES || tag.tag === TILE_BYTES;
      // Only the first image is decoded.
      if (images === 1 && lengths && tag.sum() > maxStripBytes * length)
        throw tooMuchWork('The strips or tiles of the TIFF are longer than the file.');
      if (!sizes.has(tag.tag)) sizes.set(tag.tag, tag.value);
    }
    checkSizes(sizes);
    at = at + wordBytes <= length ? file.word(at) : 0;
  }
}
