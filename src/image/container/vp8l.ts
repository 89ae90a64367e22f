import { setImmediate as turn } from 'node:timers/promises';
import { tooMuchWork } from './partLimits.ts';

/**
 * Groups of prefix codes that an image may have: one for each pixel of its entropy image (RFC 9649, section 3.7.2.2). For each group that is
 * used libwebp builds tables of six kilobytes. libwebp's encoder writes at most 2600, on images of any size
 * (MAX_HUFF_IMAGE_SIZE in its src/enc/vp8l_enc.c).
 */
const maxGroups = 8192;

/** Pixels that are read before the event loop gets a turn: some milliseconds. */
const pixelsPerTurn = 4096;

/** Order in which the lengths of the code for code lengths are stored (section 3.7.2.1.2). */
const codeLengthOrder = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] as const;
const longestCode = 15;
const [literals, lengthCodes, distanceCodes] = [256, 24, 40] as const;

/** Bits of a byte stream, the least significant first; zeros behind its end. */
class Bits {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Bits that were read. */
  get at(): number {
    return this.#at;
  }

  get ended(): boolean {
    return this.#at > this.#bytes.length * 8;
  }

  bit(): number {
    const bit = ((this.#bytes[this.#at >> 3] ?? 0) >> (this.#at & 7)) & 1;
    this.#at += 1;
    return bit;
  }

  read(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++) value += this.bit() * 2 ** i;
    return value;
  }
}

/** A canonical prefix code, decoded bit by bit. */
class PrefixCode {
  /** Number of codes by length, and the symbols in the order of their codes. */
  readonly #counts = new Uint16Array(longestCode + 1);
  readonly #symbols: number[] = [];

  /** `lengths`: of the code of each symbol; 0: it has none. */
  constructor(lengths: readonly number[]) {
    const used = lengths.flatMap((length, symbol) => (length > 0 ? [symbol] : []));
    this.#symbols = used.toSorted((a, b) => (lengths[a] ?? 0) - (lengths[b] ?? 0) || a - b);
    for (const symbol of used)
      this.#counts[lengths[symbol] ?? 0] = (this.#counts[lengths[symbol] ?? 0] ?? 0) + 1;
  }

  read(bits: Bits): number {
    // A single symbol takes no bits.
    if (this.#symbols.length < 2) return this.#symbols[0] ?? 0;
    let [code, first, index] = [0, 0, 0];
    for (let length = 1; length <= longestCode; length++) {
      code += bits.bit();
      const count = this.#counts[length] ?? 0;
      if (code - first < count) return this.#symbols[index + code - first] ?? 0;
      index += count;
      first = (first + count) * 2;
      code *= 2;
    }
    return 0;
  }
}

function readLengths(bits: Bits, alphabet: number): number[] {
  const own = Array<number>(19).fill(0);
  for (const symbol of codeLengthOrder.slice(0, 4 + bits.read(4))) own[symbol] = bits.read(3);
  const code = new PrefixCode(own);
  let left = bits.read(1) === 1 ? 2 + bits.read(2 + 2 * bits.read(3)) : alphabet;
  const lengths: number[] = [];
  let before = 8;
  for (; left > 0 && lengths.length < alphabet; left -= 1) {
    const symbol = code.read(bits);
    if (symbol < 16) {
      lengths.push(symbol);
      if (symbol > 0) before = symbol;
      continue;
    }
    const times = symbol === 16 ? 3 + bits.read(2) : symbol === 17 ? 3 + bits.read(3) : 11 + bits.read(7);
    for (let i = 0; i < times; i++) lengths.push(symbol === 16 ? before : 0);
  }
  return lengths.slice(0, alphabet);
}

function readCode(bits: Bits, alphabet: number): PrefixCode {
  if (bits.read(1) === 0) return new PrefixCode(readLengths(bits, alphabet));
  const two = bits.read(1) === 1;
  const symbols = [bits.read(bits.read(1) === 1 ? 8 : 1), ...(two ? [bits.read(8)] : [])];
  const lengths = Array<number>(Math.max(...symbols) + 1).fill(0);
  for (const symbol of symbols) lengths[symbol] = 1;
  return new PrefixCode(lengths);
}

/** A length or a distance by its prefix code (section 3.5.2). */
function readValue(bits: Bits, prefix: number): number {
  if (prefix < 4) return prefix + 1;
  const extra = (prefix - 2) >> 1;
  return (2 + (prefix & 1)) * 2 ** extra + bits.read(extra) + 1;
}

const readCacheSize = (bits: Bits): number => (bits.read(1) === 1 ? 2 ** bits.read(4) : 0);

/** Reads over an image that is coded without an entropy image. */
async function skipImage(bits: Bits, pixels: number): Promise<void> {
  const cache = readCacheSize(bits);
  const green = readCode(bits, literals + lengthCodes + cache);
  const others = [readCode(bits, literals), readCode(bits, literals), readCode(bits, literals)];
  const distance = readCode(bits, distanceCodes);
  for (let left = pixels, read = 1; left > 0 && !bits.ended; read++) {
    if (read % pixelsPerTurn === 0) await turn();
    const { at } = bits;
    const symbol = green.read(bits);
    if (symbol < literals) {
      for (const code of others) code.read(bits);
      left -= 1;
    } else if (symbol < literals + lengthCodes) {
      left -= readValue(bits, symbol - literals);
      readValue(bits, distance.read(bits));
    } else left -= 1;
    // Codes of one symbol each: so do all further pixels.
    if (bits.at === at) return;
  }
}

const blocks = (side: number, bits: number): number => Math.ceil(side / 2 ** bits);

/**
 * Rejects with ImageError for an image in the lossless format of WebP (RFC 9649, section 3) of too many groups of prefix codes, each of which
 * takes libwebp a thousand times the bytes that it has in the file. `stream`: behind the head with sides and version. Reads over
 * the transforms; of the image itself only how many groups it has.
 */
export async function checkLossless(stream: Uint8Array, width: number, height: number): Promise<void> {
  const bits = new Bits(stream);
  let columns = width;
  const seen = new Set<number>();
  while (bits.read(1) === 1) {
    const type = bits.read(2);
    // Each may be there once; libwebp refuses what repeats one.
    if (seen.has(type)) return;
    seen.add(type);
    if (type === 3) {
      const colours = bits.read(8) + 1;
      await skipImage(bits, colours);
      columns = blocks(columns, colours <= 2 ? 3 : colours <= 4 ? 2 : colours <= 16 ? 1 : 0);
    } else if (type < 2) {
      const size = bits.read(3) + 2;
      await skipImage(bits, blocks(columns, size) * blocks(height, size));
    }
  }
  readCacheSize(bits);
  if (bits.read(1) === 0) return;
  const size = bits.read(3) + 2;
  if (blocks(columns, size) * blocks(height, size) > maxGroups)
    throw tooMuchWork(`The WebP has more than ${maxGroups} groups of codes.`);
}
