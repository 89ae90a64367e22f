import { crc32 } from 'node:zlib';
import { tooManyParts, tooMuchWork } from './partLimits.ts';

const signatureBytes = 8;
/** Encoders split the image data into chunks of at least a kilobyte. */
const maxChunks = 100_000;
/** Ancillary chunks of a file at most: libpng warns of every unknown one, and sharp reports each warning. */
const maxSpare = 64;
/** Bytes of text chunks of a file at most: decompressed they may be a thousand times larger. */
const maxTextBytes = 16 * 1024;

/** Bytes of image data for each byte of its rows: packed without gain they are an eighth longer. */
const maxPacking = 1.25;
/** Bytes that image data may have beside, for a head and the ends of its blocks. */
const spareBytes = 64 * 1024;
/** Samples of a pixel by its colour type (PNG, section 11.2.1). */
const samples: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** The most bytes that the image data of a file may have: packed rows, each with its filter, in up to seven passes. */
function mostData(header: Buffer): number {
  if (header.length < 10) return Number.POSITIVE_INFINITY;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const row = (width * header.readUInt8(8) * (samples[header.readUInt8(9)] ?? 4)) / 8;
  return maxPacking * height * (row + 4) + spareBytes;
}

const number = (type: string): number => Buffer.from(type, 'latin1').readUInt32BE();

const [IDAT, IEND, ZTXT, ITXT] = [number('IDAT'), number('IEND'), number('zTXt'), number('iTXt')] as const;
/** Ancillary chunks that affect the result. An image has at most one of each. */
const used: ReadonlySet<number> = new Set(
  ['tRNS', 'iCCP', 'gAMA', 'cHRM', 'sRGB', 'pHYs', 'eXIf', 'sBIT', 'bKGD', 'cICP'].map(number),
);
/** Bit 5 of the type's first letter (PNG, section 5.4). */
const isCritical = (type: number): boolean => (type & 0x20000000) === 0;

export interface PngChunk {
  readonly type: string;
  /** All of it, length and checksum included. */
  readonly from: number;
  readonly end: number;
  readonly data: Buffer;
}

/** The chunks of a PNG, in their order, up to one that is not complete. */
function* pngChunks(bytes: Buffer): Generator<PngChunk> {
  for (let from = signatureBytes; from + 12 <= bytes.length; ) {
    const end = from + 12 + bytes.readUInt32BE(from);
    if (end > bytes.length) return;
    const type = bytes.toString('latin1', from + 4, from + 8);
    yield { type, from, end, data: bytes.subarray(from + 8, end - 4) };
    from = end;
  }
}

export function findChunk(bytes: Buffer, wanted: string): PngChunk | undefined {
  for (const chunk of pngChunks(bytes)) if (chunk.type === wanted) return chunk;
  return undefined;
}

export function* chunksBeforeData(bytes: Buffer): Generator<PngChunk> {
  for (const chunk of pngChunks(bytes)) {
    if (chunk.type === 'IDAT') return;
    yield chunk;
  }
}

/** A chunk with its length and checksum. */
export function pngChunk(type: string, ...data: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), ...data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(body.length - 4);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

/**
 * The file without superfluous and repeated chunks if it has more of them than an image needs; otherwise the
 * same bytes. The result does not depend on them, and a megabyte of file can hold gigabytes of text, or cause
 * 90 000 warnings. Throws ImageError for more chunks or more data than an image can have.
 */
export function neededChunks(file: Uint8Array): Uint8Array {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const kept: Buffer[] = [];
  const seen = new Set<number>();
  let from = 0;
  let chunks = 0;
  let spare = 0;
  let texts = 0;
  let data = 0;
  const most = mostData(bytes.subarray(signatureBytes + 8));
  for (let at = signatureBytes; at + 12 <= bytes.length; ) {
    chunks += 1;
    if (chunks > maxChunks) throw tooManyParts('chunks', maxChunks);
    const length = bytes.readUInt32BE(at);
    const next = at + 12 + length;
    const type = bytes.readUInt32BE(at + 4);
    if (type === IEND) break;
    if (type === IDAT) data += length;
    if (data > most) throw tooMuchWork('The PNG has more data than its pixels need.');
    const needed = type === IDAT || ((isCritical(type) || used.has(type)) && !seen.has(type));
    if (needed) {
      if (type !== IDAT) seen.add(type);
    } else {
      spare += 1;
      if (type === ZTXT || type === ITXT) texts += length;
      if (at > from) kept.push(bytes.subarray(from, at));
      from = next;
    }
    at = next;
  }
  if (spare <= maxSpare && texts <= maxTextBytes) return file;
  return Buffer.concat([...kept, bytes.subarray(Math.min(from, bytes.length))]);
}
