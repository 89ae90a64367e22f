import { setImmediate as turn } from 'node:timers/promises';
import { fail } from '../../errors.ts';
import { maxFields, maxNameLength, nameTooLong } from '../form.ts';
import { bodyBytesPerTurn } from './limits.ts';
import { LongTextFinder, type Scanned, shorten } from './longTexts.ts';

/** Objects: a field may be one, `{"shadow_type": {"person": "drop"}}`. Its values may be lists, one level deeper. */
const maxDepth = 2;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OBJECT = 0x7b;
/** The opening and closing brackets: `[` `]`, `{` `}`. */
const OPENING = [0x5b, OBJECT];
const CLOSING = [0x5d, 0x7d];

/** How each byte outside of strings is counted; 0: not at all. */
const kinds = new Uint8Array(256);
const [text, comma, open, close, colon, digit] = [1, 2, 3, 4, 5, 6] as const;
kinds[QUOTE] = text;
kinds[COMMA] = comma;
kinds[COLON] = colon;
for (const byte of Buffer.from('0123456789+-.eE')) kinds[byte] = digit;
for (const byte of OPENING) kinds[byte] = open;
for (const byte of CLOSING) kinds[byte] = close;

/**
 * The maximum number of bytes of a name, every character as `\uXXXX`. Long names take the parser quadratic
 * time, because it hashes them by their length.
 */
const maxNameBytes = 6 * maxNameLength;
/** The maximum number of characters of a number. */
const maxDigits = 400;

const UNICODE = 0x75;
const ZERO = 0x30;

/** The maximum number of bytes outside of strings: brackets, numbers and white space. */
const maxOtherBytes = 1024 * 1024;
/** Bytes of an escape: `\\n`, `\\u20ac`. */
const escapeBytes = 2;
const unicodeEscapeBytes = 6;

/**
 * Scans a body before it is parsed. Throws `malformed_request` for JSON that is more expensive to parse than
 * its bytes suggest: nested deeper than options are, with more values than a form may have fields, with long
 * names or numbers, or with much white space. Syntax is checked by the parser.
 */
export async function scanJson(bytes: Buffer): Promise<Scanned> {
  const long = new LongTextFinder();
  let depth = 0;
  let values = 0;
  let beside = 0;
  let wide = false;
  let inText = false;
  let escapeEnd = 0;
  let textStart = 0;
  let textLength = 0;
  let digits = 0;
  for (let from = 0; from < bytes.length; from += bodyBytesPerTurn) {
    if (from > 0) await turn();
    const end = Math.min(bytes.length, from + bodyBytesPerTurn);
    for (let at = from; at < end; at += 1) {
      const byte = bytes[at] ?? 0;
      if (inText) {
        if (at < escapeEnd) continue;
        if (at >= long.due) long.cut(at, byte);
        if (byte === BACKSLASH) {
          const unicode = bytes[at + 1] === UNICODE;
          if (unicode && !(bytes[at + 2] === ZERO && bytes[at + 3] === ZERO)) wide = true;
          escapeEnd = at + (unicode ? unicodeEscapeBytes : escapeBytes);
        } else if (byte === QUOTE) {
          inText = false;
          long.end(at);
          textLength = at - textStart;
        }
        continue;
      }
      beside += 1;
      const kind = kinds[byte];
      if (kind === digit) {
        digits += 1;
        if (digits > maxDigits)
          throw fail('malformed_request', {
            detail: `The JSON has a number of more than ${maxDigits} digits.`,
          });
      } else if (kind !== 0) digits = 0;
      if (kind === text) {
        inText = true;
        textStart = at + 1;
        long.begin(textStart);
      } else if (kind === colon) {
        if (textLength > maxNameBytes) throw nameTooLong();
      } else if (kind === close) depth -= 1;
      else if (kind === comma || kind === open) {
        values += 1;
        if (kind === open) depth += 1;
        if (depth > maxDepth + 1 || (depth > maxDepth && byte === OBJECT))
          throw fail('malformed_request', { detail: `The JSON is nested deeper than ${maxDepth} levels.` });
        if (values > maxFields)
          throw fail('malformed_request', { detail: `The JSON has more than ${maxFields} values.` });
      }
    }
    if (beside > maxOtherBytes)
      throw fail('malformed_request', {
        detail: `The JSON has more than ${maxOtherBytes / 2 ** 20} MiB beside its texts.`,
      });
  }
  // An unterminated string is found here, because the parser does not see long ones.
  if (inText) throw new SyntaxError('A text has no end.');
  const decode = (piece: Buffer) => JSON.parse(`"${piece.toString()}"`) as string;
  return { wide, shorten: () => shorten(bytes, long.found, decode) };
}
