import { boxesIn, Cursor, type Property, readLocationWidths } from '../heif/items.ts';
import { tooManyParts } from './partLimits.ts';

const maxBoxes = 10_000;
const maxDepth = 12;
/** Images, tiles of images and their metadata; 50 megapixels in tiles of 512 pixels are 200. */
const maxItems = 1000;
/** Places in the file that make up items. */
const maxExtents = 10_000;

/** Boxes that hold boxes, and the bytes before the first one (ISO/IEC 14496-12, 23008-12). */
const containers: Readonly<Record<string, number>> = {
  ...{ meta: 4, iprp: 0, ipco: 0, iref: 4, grpl: 0, dinf: 0, dref: 8, udta: 0 },
  ...{ moov: 0, trak: 0, edts: 0, mdia: 0, minf: 0, stbl: 0, stsd: 8, moof: 0, traf: 0, mvex: 0 },
};

/** Reads up to what leads outside of a box. */
function readWhatIsThere(reading: () => void): void {
  try {
    reading();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
}

/** Each table names every item once. */
function checkItems(count: number): number {
  if (count > maxItems) throw tooManyParts('items', maxItems);
  return count;
}

/** Counts what a file has; every count is of the whole file. */
class Walk {
  #boxes = 0;
  #extents = 0;

  boxes(bytes: Buffer, depth: number): void {
    if (depth > maxDepth) throw tooManyParts('levels of boxes', maxDepth);
    for (const box of boxesIn(bytes)) {
      this.#boxes += 1;
      if (this.#boxes > maxBoxes) throw tooManyParts('boxes', maxBoxes);
      readWhatIsThere(() => this.#box(box, depth));
    }
  }

  #box({ type, body }: Property, depth: number): void {
    const cursor = new Cursor(body);
    if (type === 'iloc') this.#locations(cursor);
    else if (type === 'iinf') {
      const version = cursor.number(1);
      cursor.at = 4;
      checkItems(cursor.number(version === 0 ? 2 : 4));
      this.boxes(body.subarray(cursor.at), depth + 1);
    } else if (type === 'ipma') {
      cursor.at = 4;
      checkItems(cursor.number(4));
    } else {
      const before = containers[type];
      if (before !== undefined) this.boxes(body.subarray(before), depth + 1);
    }
  }

  #locations(cursor: Cursor): void {
    const { idBytes, itemBytes, extentBytes } = readLocationWidths(cursor);
    for (let left = checkItems(cursor.number(idBytes)); left > 0; left -= 1) {
      cursor.at += itemBytes;
      const extents = cursor.number(2);
      this.#extents += extents;
      if (this.#extents > maxExtents) throw tooManyParts('extents', maxExtents);
      cursor.at += extents * extentBytes;
    }
  }
}

/**
 * Throws ImageError for an AVIF or HEIC of too many boxes, items or extents (ISO/IEC 14496-12): libheif stores a record of
 * each. What the pixels are coded in (`mdat`) is not looked at.
 */
export function checkHeif(file: Uint8Array): void {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  readWhatIsThere(() => new Walk().boxes(bytes, 0));
}
