import { setImmediate as turn } from 'node:timers/promises';
import { fail } from '../../errors.ts';
import { mostNameLength, nameTooLong } from '../form.ts';
import { bytesATurn, mostFields } from './limits.ts';

const AMPERSAND = 0x26;
const PERCENT = 0x25;
const PLUS = 0x2b;
const SPACE = 0x20;
const EQUALS = 0x3d;
const OPENING = 0x5b;
const CLOSING = 0x5d;

/** Of a name, each of its characters three bytes as `%XX`. Long ones take whoever keeps them by name quadratic time. */
const mostNameBytes = 9 * mostNameLength;

/** The value of a hexadecimal digit by its code, 255 for what is none. */
const digits = new Uint8Array(256).fill(255);
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  digits[digit.charCodeAt(0)] = value;
  digits[digit.toUpperCase().charCodeAt(0)] = value;
}

/** The byte that `%XX` at `at` stands for; 256 and more where these are no digits. */
const escaped = (bytes: Uint8Array, at: number): number =>
  (digits[bytes[at + 1] ?? 0] ?? 255) * 16 + (digits[bytes[at + 2] ?? 0] ?? 255);

/**
 * Throws `malformed_request` where there are more pairs than a form may have fields, or longer names. Plus signs become spaces and escaped
 * brackets plain ones, in place: the parser replaces each of them in the whole text, which takes seconds where there are
 * millions. Returns what is left of the bytes. `wide`: it escapes bytes beyond ASCII.
 */
export async function prepareUrlencoded(
  bytes: Buffer,
): Promise<{ readonly bytes: Buffer; readonly wide: boolean }> {
  let wide = false;
  let pairs = 1;
  let at = 0;
  let end = 0;
  let inName = true;
  let nameStart = 0;
  for (let until = bytesATurn; at < bytes.length; until += bytesATurn) {
    if (at > 0) await turn();
    for (; at < bytes.length && at < until; at += 1) {
      let byte = bytes[at] ?? 0;
      if (inName && at - nameStart > mostNameBytes) throw nameTooLong();
      if (byte === PLUS) byte = SPACE;
      else if (byte === EQUALS) inName = false;
      else if (byte === AMPERSAND) {
        inName = true;
        nameStart = at + 1;
        pairs += 1;
        if (pairs > mostFields)
          throw fail('malformed_request', { detail: `The form has more than ${mostFields} fields.` });
      } else if (byte === PERCENT) {
        const meant = escaped(bytes, at);
        if (meant === OPENING || meant === CLOSING) {
          byte = meant;
          at += 2;
        } else if (meant >= 0x80) wide = true;
      }
      bytes[end] = byte;
      end += 1;
    }
  }
  return { bytes: bytes.subarray(0, end), wide };
}

/**
 * A name or a value of what `prepareUrlencoded` returned, decoded as the URL standard says: what is no escape stays, what
 * is no UTF-8 becomes U+FFFD.
 */
export function decodeUrlencoded(text: string): string {
  if (!text.includes('%')) return text;
  const bytes = Buffer.from(text);
  let end = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    let byte = bytes[at] ?? 0;
    if (byte === PERCENT && escaped(bytes, at) < 256) {
      byte = escaped(bytes, at);
      at += 2;
    }
    bytes[end] = byte;
    end += 1;
  }
  return bytes.toString('utf8', 0, end);
}
