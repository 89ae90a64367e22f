import type { CodePoints } from '../codePoints.ts';
import { assertDimensions, cannotRead, cutShort, dimensionsUnreadable, ImageError } from '../errors.ts';
import type { Dimensions, ProbeLimits } from '../types.ts';
import { type Item, type Items, type Property, readItems } from './items.ts';

/** What the boxes of a HEIC state about the image that it shows. */
interface HeicHeader extends Dimensions {
  /** Bits of a coded sample; 16 for anything above 8. */
  readonly depth: 8 | 16;
  readonly hasAlpha: boolean;
  /** Whether the colours are multiplied by alpha. */
  readonly premultiplied?: true;
  readonly icc?: Uint8Array;
  readonly codePoints?: CodePoints;
}

/** Pixels of all tiles together, for each pixel of the image: those at its borders reach beyond it. */
const maxTilePixels = 4;
/** Bytes that describe a grid: 12, and some that later versions may add. */
const maxGridBytes = 64;
/** A tile has at least 64 x 64. */
const leastTilePixels = 4096;

const propertyOf = (item: Item, type: string): Property | undefined =>
  item.properties.find((property) => property.type === type);

function codedSize(item: Item): Dimensions {
  const size = propertyOf(item, 'ispe');
  if (!size) throw new RangeError('an image without a size');
  return { width: size.body.readUInt32BE(4), height: size.body.readUInt32BE(8) };
}

/** The size after `clap`, `irot` and `imir`, which decoders apply in the order of the properties. */
function shownSize(item: Item): Dimensions {
  let { width, height } = codedSize(item);
  for (const { type, body } of item.properties) {
    if (type === 'irot' && (body.readUInt8(0) & 1) === 1) [width, height] = [height, width];
    if (type !== 'clap') continue;
    const side = (at: number) => Math.round(body.readUInt32BE(at) / body.readUInt32BE(at + 4));
    [width, height] = [Math.min(width, side(0)), Math.min(height, side(8))];
  }
  return { width, height };
}

type Limits = Pick<ProbeLimits, 'maxPixels'>;

/** How the images of a file are coded, as its items name it. */
type Codec = 'hvc1' | 'av01';
const codecNames: Readonly<Record<Codec, string>> = { hvc1: 'HEVC', av01: 'AV1' };

/** Coded images that a decoder needs for an item: itself or its tiles. */
function codedImages({ items, references }: Items, id: number, codec: Codec, limits: Limits): Item[] {
  const item = items.get(id);
  if (!item) throw new RangeError('an item that the file lacks');
  const { width, height } = codedSize(item);
  assertDimensions({ width, height }, limits);
  if (item.type === codec) return [item];
  if (item.type !== 'grid')
    throw cannotRead(
      `The file holds an image of type "${item.type}"; only ${codecNames[codec]} and grids of it are read.`,
    );

  // Grids of anything but coded images are refused, so grids do not nest.
  if (item.bytes > maxGridBytes) throw cannotRead('The grid of the image is longer than any.');
  const grid = item.data();
  const wide = (grid.readUInt8(1) & 1) === 1;
  const [rows, columns] = [grid.readUInt8(2) + 1, grid.readUInt8(3) + 1];
  const [gridWidth, gridHeight] = wide
    ? [grid.readUInt32BE(4), grid.readUInt32BE(8)]
    : [grid.readUInt16BE(4), grid.readUInt16BE(6)];
  const ids = references.filter(({ type, from }) => type === 'dimg' && from === id).flatMap(({ to }) => to);
  if (gridWidth !== width || gridHeight !== height || ids.length !== rows * columns)
    throw cannotRead('The tiles of the image do not fit together.');
  const tiles = ids.map((tile) => items.get(tile));
  const coded = tiles.filter((tile) => tile?.type === codec) as Item[];
  if (coded.length !== tiles.length)
    throw cannotRead(`A tile of the image is not coded in ${codecNames[codec]}.`);
  const pixels = coded.map(codedSize).reduce((sum, tile) => sum + tile.width * tile.height, 0);
  if (pixels > maxTilePixels * Math.max(width * height, leastTilePixels))
    throw cannotRead('The tiles of the image are larger than the image.');
  return coded;
}

/** Whether an auxiliary image is the alpha of what it refers to. */
const isAlpha = (item: Item | undefined): boolean => {
  const name = (item && propertyOf(item, 'auxC'))?.body.toString('latin1', 4) ?? '';
  return /^urn:mpeg:(?:hevc:2015:auxid:1|mpegB:cicp:systems:auxiliary:alpha)\0/.test(name);
};

function depthOf(image: Item): 8 | 16 {
  const configuration = propertyOf(image, 'hvcC');
  if (!configuration) throw new RangeError('an image without a decoder configuration');
  const bits = (at: number) => configuration.body.readUInt8(at) & 7;
  return bits(17) + bits(18) === 0 ? 8 : 16;
}

function profileOf(item: Item): Uint8Array | undefined {
  const isProfile = ({ type, body }: Property) =>
    type === 'colr' && ['prof', 'rICC'].includes(body.toString('latin1', 0, 4));
  return item.properties.find(isProfile)?.body.subarray(4);
}

/** The code points of an image: `nclx` (ISO/IEC 14496-12, section 12.1.5). */
function codePointsOf(item: Item): CodePoints | undefined {
  const isCoded = ({ type, body }: Property) => type === 'colr' && body.toString('latin1', 0, 4) === 'nclx';
  const body = item.properties.find(isCoded)?.body;
  return body && { primaries: body.readUInt16BE(4), transfer: body.readUInt16BE(6) };
}

/** What a decoder reads for the image that the file shows. `coded`: the image or its tiles, and those of its alpha. */
function codedParts(heif: Items, codec: Codec, file: Buffer, limits: Limits) {
  const { primary, items, references } = heif;
  const image = items.get(primary);
  if (!image) throw new RangeError('no primary item');
  const tiles = codedImages(heif, primary, codec, limits);
  const [first] = tiles;
  if (!first) throw new RangeError('no tile');
  const alphaId = references.find(
    ({ type, from, to }) => type === 'auxl' && to.includes(primary) && isAlpha(items.get(from)),
  )?.from;
  const alpha = alphaId === undefined ? [] : codedImages(heif, alphaId, codec, limits);

  // Each coded image is read once, or as often as the grid names it: not much more than the file.
  const coded = [...tiles, ...alpha];
  if (coded.some(({ complete }) => !complete)) throw cannotRead(cutShort);
  const bytes = coded.reduce((sum, item) => sum + item.bytes, 0);
  if (bytes > 2 * file.length) throw cannotRead('The images of the file are longer than the file.');
  const codePoints = codePointsOf(image) ?? codePointsOf(first);
  return { image, first, coded, hasAlpha: alpha.length > 0, codePoints };
}

function read(file: Buffer, limits: Limits): HeicHeader {
  const heif = readItems(file);
  const { image, first, coded, hasAlpha, codePoints } = codedParts(heif, 'hvc1', file, limits);
  const icc = profileOf(image) ?? profileOf(first);
  const premultiplied = heif.references.some(({ type, from }) => type === 'prem' && from === heif.primary);
  return {
    ...shownSize(image),
    depth: coded.every((item) => depthOf(item) === 8) ? 8 : 16,
    hasAlpha,
    ...(premultiplied && { premultiplied: true as const }),
    ...(icc && { icc }),
    ...(codePoints && { codePoints }),
  };
}

/** The result of reading boxes; a length or an offset that leads outside the file is an ImageError. */
function readingBoxes<T>(heif: Uint8Array, reading: (file: Buffer) => T): T {
  try {
    return reading(Buffer.from(heif.buffer, heif.byteOffset, heif.byteLength));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ImageError('invalid_dimensions', dimensionsUnreadable, error);
  }
}

/**
 * Checks, as `readHeicHeader`, what a decoder would read or allocate for an AVIF: grids with tiles larger than the
 * image, or one of them again and again. Returns its code points. Throws ImageError.
 */
export function checkAvif(avif: Uint8Array, limits: Limits): CodePoints | undefined {
  return readingBoxes(avif, (file) => codedParts(readItems(file), 'av01', file, limits).codePoints);
}

/**
 * Reads the boxes of a HEIC (ISO/IEC 23008-12) and checks everything that a decoder would read or allocate for the image
 * it shows: the tiles, the alpha, their sizes and lengths. Thumbnails, depth and gain maps are not decoded. The
 * orientation is that of `irot` and `imir`; the one in EXIF describes the same and is ignored, as the standard demands.
 * Throws ImageError.
 */
export function readHeicHeader(heic: Uint8Array, limits: Limits): HeicHeader {
  return readingBoxes(heic, (file) => read(file, limits));
}
