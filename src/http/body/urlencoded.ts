import { setImmediate as turn } from 'node:timers/promises';
import { malformed } from '../../errors.ts';
import { maxFields, maxNameLength, nameTooLong } from '../form.ts';
import { bodyBytesPerTurn } from './limits.ts';
import { LongTextFinder, type Scanned, shorten } from './longTexts.ts';

const ampersandByte = 0x26;
const percentByte = 0x25;
const plusByte = 0x2b;
const spaceByte = 0x20;
const equalsByte = 0x3d;
const openingByte = 0x5b;
const closingByte = 0x5d;

/** Fields in base64, which clients send without escaping the plus signs. */
const isBase64Field = (name: string): boolean => /^(?:image|mask)_file_b64(?:\[\d*\])?$/.test(name);

/** Bytes of a name, every character as three `%XX`: as keys, longer ones take quadratic time. */
const maxNameBytes = 9 * maxNameLength;

/** Value of a hexadecimal digit by its code; 255 for other characters. */
const digits = new Uint8Array(256).fill(255);
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  digits[digit.charCodeAt(0)] = value;
  digits[digit.toUpperCase().charCodeAt(0)] = value;
}

/** The byte encoded by `%XX` at `at`; 256 or more if these are not digits. */
const escaped = (bytes: Uint8Array, at: number): number =>
  (digits[bytes[at + 1] ?? 0] ?? 255) * 16 + (digits[bytes[at + 2] ?? 0] ?? 255);

/** Bytes of an escape: `%20`. */
const escapeBytes = 3;

/**
 * Scans a body before it is parsed. Throws `malformed_request` for more pairs than a form may have fields, or
 * for longer names. Plus signs become spaces and escaped brackets plain ones, in place: the parser replaces
 * each of them in the whole text, which takes seconds if there are millions. Within a text in base64, from its first
 * character to its padding, a space means the plus sign that it came from.
 */
export async function scanUrlencoded(bytes: Buffer): Promise<Scanned> {
  const long = new LongTextFinder();
  let wide = false;
  let pairs = 1;
  let at = 0;
  let end = 0;
  let inName = true;
  let nameStart = 0;
  /** Where the name begins in the written bytes. */
  let writtenStart = 0;
  /** Whether spaces mean plus signs here. */
  let base64 = false;
  let valueStart = 0;
  let escapeEnd = 0;
  for (let until = bodyBytesPerTurn; at < bytes.length; until += bodyBytesPerTurn) {
    if (at > 0) await turn();
    for (; at < bytes.length && at < until; at += 1) {
      let byte = bytes[at] ?? 0;
      let meant = byte;
      if (inName && at - nameStart > maxNameBytes) throw nameTooLong();
      if (byte === plusByte) {
        // The first character of no image is a plus sign: before the text it was white space.
        if (!base64 || end === valueStart) byte = spaceByte;
      } else if (byte === equalsByte && inName) {
        inName = false;
        base64 = isBase64Field(bytes.toString('latin1', writtenStart, end));
        valueStart = end + 1;
        long.begin(end + 1);
      } else if (byte === equalsByte) base64 = false;
      else if (byte === ampersandByte) {
        if (!inName) long.end(end);
        inName = true;
        base64 = false;
        nameStart = at + 1;
        writtenStart = end + 1;
        pairs += 1;
        if (pairs > maxFields) throw malformed(`The form has more than ${maxFields} fields.`);
      } else if (byte === percentByte) {
        meant = escaped(bytes, at);
        if (meant === equalsByte) base64 = false;
        const space = base64 && meant === spaceByte && end > valueStart;
        if (meant === openingByte || meant === closingByte || space) {
          byte = space ? plusByte : meant;
          at += 2;
        } else if (meant < 256) {
          escapeEnd = end + escapeBytes;
          if (meant >= 0x80) wide = true;
        }
      }
      if (end >= long.due && (end >= escapeEnd || escapeEnd === end + escapeBytes)) long.cut(end, meant);
      bytes[end] = byte;
      end += 1;
    }
  }
  if (!inName) long.end(end);
  const decode = (piece: Buffer) => decodeEscapes(piece).toString();
  return { wide, shorten: () => shorten(bytes.subarray(0, end), long.found, decode) };
}

/** Decodes escapes in place, as the URL standard says; invalid ones stay. Returns the shortened bytes. */
function decodeEscapes(bytes: Buffer): Buffer {
  let end = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    let byte = bytes[at] ?? 0;
    if (byte === percentByte && escaped(bytes, at) < 256) {
      byte = escaped(bytes, at);
      at += 2;
    }
    bytes[end] = byte;
    end += 1;
  }
  return bytes.subarray(0, end);
}

/** Decodes a name or a value of what `scanUrlencoded` returned; invalid UTF-8 becomes U+FFFD. */
export const decodeUrlencoded = (text: string): string =>
  text.includes('%') ? decodeEscapes(Buffer.from(text)).toString() : text;
