import { setImmediate as turn } from 'node:timers/promises';
import { malformed } from '../../errors.ts';
import { maxFields, maxNameLength, nameTooLong } from '../form.ts';
import { bodyBytesPerTurn } from './limits.ts';
import { LongTextFinder, type Scanned, shorten } from './longTexts.ts';

/** Objects: a field may be one, `{"shadow_type": {"person": "drop"}}`. Its values may be lists, one level deeper. */
const maxDepth = 2;

const quoteByte = 0x22;
const backslashByte = 0x5c;
const commaByte = 0x2c;
const colonByte = 0x3a;
const objectByte = 0x7b;
/** The opening and closing brackets: `[` `]`, `{` `}`. */
const openingBytes = [0x5b, objectByte];
const closingBytes = [0x5d, 0x7d];

/** How each byte outside of strings is counted; 0: not at all. */
const kinds = new Uint8Array(256);
const [text, comma, open, close, colon, digit] = [1, 2, 3, 4, 5, 6] as const;
kinds[quoteByte] = text;
kinds[commaByte] = comma;
kinds[colonByte] = colon;
for (const byte of Buffer.from('0123456789+-.eE')) kinds[byte] = digit;
for (const byte of openingBytes) kinds[byte] = open;
for (const byte of closingBytes) kinds[byte] = close;

/** Bytes of a name, every character as `\uXXXX`: the parser hashes longer ones in quadratic time. */
const maxNameBytes = 6 * maxNameLength;
/** The maximum number of characters of a number. */
const maxDigits = 400;

const unicodeByte = 0x75;
const zeroByte = 0x30;

/** The maximum number of bytes outside of strings: brackets, numbers and white space. */
const maxOtherBytes = 1024 * 1024;
/** Bytes of an escape: `\\n`, `\\u20ac`. */
const escapeBytes = 2;
const unicodeEscapeBytes = 6;

/** Scans the bytes of a body in order, and counts what makes JSON expensive to parse. */
class JsonScanner {
  readonly long = new LongTextFinder();
  /** Whether there are escapes of characters beyond Latin-1. */
  wide = false;
  inText = false;
  readonly #bytes: Buffer;
  #depth = 0;
  #values = 0;
  /** Bytes outside of strings. */
  #others = 0;
  #escapeEnd = 0;
  #textStart = 0;
  #textLength = 0;
  #digits = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Scans the bytes from `from` to before `end`. Throws `malformed_request`. */
  scan(from: number, end: number): void {
    for (let at = from; at < end; at += 1) {
      const byte = this.#bytes[at] ?? 0;
      if (!this.inText) this.#outside(at, byte);
      else if (at >= this.#escapeEnd) this.#inside(at, byte);
    }
    if (this.#others > maxOtherBytes)
      throw malformed(`The JSON has more than ${maxOtherBytes / 2 ** 20} MiB beside its texts.`);
  }

  #inside(at: number, byte: number): void {
    if (at >= this.long.due) this.long.cut(at, byte);
    if (byte === backslashByte) {
      const bytes = this.#bytes;
      const unicode = bytes[at + 1] === unicodeByte;
      if (unicode && !(bytes[at + 2] === zeroByte && bytes[at + 3] === zeroByte)) this.wide = true;
      this.#escapeEnd = at + (unicode ? unicodeEscapeBytes : escapeBytes);
    } else if (byte === quoteByte) {
      this.inText = false;
      this.long.end(at);
      this.#textLength = at - this.#textStart;
    }
  }

  #outside(at: number, byte: number): void {
    this.#others += 1;
    const kind = kinds[byte];
    if (kind === digit) {
      this.#digits += 1;
      if (this.#digits > maxDigits)
        throw malformed(`The JSON has a number of more than ${maxDigits} digits.`);
    } else if (kind !== 0) this.#digits = 0;
    if (kind === text) {
      this.inText = true;
      this.#textStart = at + 1;
      this.long.begin(this.#textStart);
    } else if (kind === colon) {
      if (this.#textLength > maxNameBytes) throw nameTooLong();
    } else if (kind === close) this.#depth -= 1;
    else if (kind === comma || kind === open) this.#value(byte);
  }

  /** A value begins after this comma or bracket. */
  #value(byte: number): void {
    this.#values += 1;
    if (kinds[byte] === open) this.#depth += 1;
    if (this.#depth > maxDepth + 1 || (this.#depth > maxDepth && byte === objectByte))
      throw malformed(`The JSON is nested deeper than ${maxDepth} levels.`);
    if (this.#values > maxFields) throw malformed(`The JSON has more than ${maxFields} values.`);
  }
}

/**
 * Scans a body before it is parsed. Throws `malformed_request` for JSON that is more expensive to parse than
 * its bytes suggest: nested deeper than options are, with more values than a form may have fields, with long
 * names or numbers, or with much white space. Syntax is checked by the parser.
 */
export async function scanJson(bytes: Buffer): Promise<Scanned> {
  const scanner = new JsonScanner(bytes);
  for (let from = 0; from < bytes.length; from += bodyBytesPerTurn) {
    if (from > 0) await turn();
    scanner.scan(from, Math.min(bytes.length, from + bodyBytesPerTurn));
  }
  // An unterminated string is found here, because the parser does not see long ones.
  if (scanner.inText) throw new SyntaxError('A text has no end.');
  const decode = (piece: Buffer) => JSON.parse(`"${piece.toString()}"`) as string;
  return { wide: scanner.wide, shorten: () => shorten(bytes, scanner.long.found, decode) };
}
