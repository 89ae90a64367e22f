import { tooManyParts } from './partLimits.ts';

const maxBoxes = 10_000;
const maxDepth = 12;
/** Images, tiles of images and their metadata; 50 megapixels in tiles of 512 pixels are 200. */
const maxItems = 1000;
/** Places in the file that make up items. */
const maxExtents = 10_000;

/** Boxes that hold boxes, and the bytes before the first one (ISO/IEC 14496-12, 23008-12). */
const containers: ReadonlyMap<string, number> = new Map([
  ['meta', 4],
  ['iprp', 0],
  ['ipco', 0],
  ['iref', 4],
  ['grpl', 0],
  ['dinf', 0],
  ['dref', 8],
  ['moov', 0],
  ['trak', 0],
  ['edts', 0],
  ['mdia', 0],
  ['minf', 0],
  ['stbl', 0],
  ['stsd', 8],
  ['udta', 0],
  ['moof', 0],
  ['traf', 0],
  ['mvex', 0],
]);

interface Box {
  readonly type: string;
  readonly from: number;
  readonly end: number;
}

/** Counts what a file has; every count is of the whole file. */
class Walk {
  readonly #bytes: Buffer;
  #boxes = 0;
  #extents = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  boxes(from: number, end: number, depth: number): void {
    if (depth > maxDepth) throw tooManyParts('levels of boxes', maxDepth);
    for (let at = from; at + 8 <= end; ) {
      this.#boxes += 1;
      if (this.#boxes > maxBoxes) throw tooManyParts('boxes', maxBoxes);
      const size = this.#number(at, 4);
      const head = size === 1 ? 16 : 8;
      const length = size === 1 ? this.#number(at + 8, 8) : size === 0 ? end - at : size;
      if (length < head) return;
      const type = this.#bytes.toString('latin1', at + 4, at + 8);
      this.#box({ type, from: at + head, end: Math.min(end, at + length) }, depth);
      at += length;
    }
  }

  #box({ type, from, end }: Box, depth: number): void {
    const version = this.#number(from, 1);
    if (type === 'iloc') this.#locations(from, end, version);
    else if (type === 'iinf') {
      const width = version === 0 ? 2 : 4;
      this.#countItems(this.#number(from + 4, width));
      this.boxes(from + 4 + width, end, depth + 1);
    } else if (type === 'ipma') this.#countItems(this.#number(from + 4, 4));
    else {
      const before = containers.get(type);
      if (before !== undefined) this.boxes(from + before, end, depth + 1);
    }
  }

  /** Item locations: items, each of extents. */
  #locations(from: number, end: number, version: number): void {
    const [sizes, more] = [this.#number(from + 4, 1), this.#number(from + 5, 1)];
    const [offset, length, base] = [sizes >> 4, sizes & 15, more >> 4];
    const index = version === 0 ? 0 : more & 15;
    const width = version < 2 ? 2 : 4;
    const items = this.#number(from + 6, width);
    this.#countItems(items);
    const head = width + (version === 0 ? 0 : 2) + 2 + base;
    let at = from + 6 + width;
    for (let item = 0; item < items && at + head + 2 <= end; item += 1) {
      const extents = this.#number(at + head, 2);
      this.#extents += extents;
      if (this.#extents > maxExtents) throw tooManyParts('extents', maxExtents);
      at += head + 2 + extents * (index + offset + length);
    }
  }

  /** Each table names every item once. */
  #countItems(count: number): void {
    if (count > maxItems) throw tooManyParts('items', maxItems);
  }

  /** Beyond the end: 0. */
  #number(at: number, bytes: 1 | 2 | 4 | 8): number {
    if (at + bytes > this.#bytes.length) return 0;
    return bytes === 8 ? Number(this.#bytes.readBigUInt64BE(at)) : this.#bytes.readUIntBE(at, bytes);
  }
}

/**
 * Throws ImageError for an AVIF, HEIC or JPEG XL of too many boxes, items or extents (ISO/IEC 14496-12): libheif stores a record of
 * each. What the pixels are coded in (`mdat`) is not looked at.
 */
export function checkHeif(file: Uint8Array): void {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  new Walk(bytes).boxes(0, bytes.length, 0);
}
