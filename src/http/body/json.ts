import { setImmediate as turn } from 'node:timers/promises';
import { fail } from '../../errors.ts';
import { bytesATurn, mostFields } from './limits.ts';

/** Inside the object that the body is: a field may be an object, `{"shadow_type": {"person": "drop"}}`, of lists. */
const mostDepth = 2;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
/** Each of the two opening brackets and its closing one: `[` `]`, `{` `}`. */
const OPENING = [0x5b, 0x7b];
const CLOSING = [0x5d, 0x7d];

/** How each byte outside of texts counts; 0: not at all. */
const kinds = new Uint8Array(256);
const [text, comma, open, close] = [1, 2, 3, 4] as const;
kinds[QUOTE] = text;
kinds[COMMA] = comma;
for (const byte of OPENING) kinds[byte] = open;
for (const byte of CLOSING) kinds[byte] = close;

const UNICODE = 0x75;
const ZERO = 0x30;

/**
 * Throws `malformed_request` for JSON that costs more to parse than its bytes: nested deeper than an options object
 * ever is, or with more values than a form may have fields. It need not be JSON at all; that is the parser's matter.
 * `wide`: it escapes characters beyond Latin-1.
 */
export async function checkJson(bytes: Buffer): Promise<{ readonly bytes: Buffer; readonly wide: boolean }> {
  let depth = 0;
  let values = 0;
  let wide = false;
  let inText = false;
  let escaped = false;
  for (let from = 0; from < bytes.length; from += bytesATurn) {
    if (from > 0) await turn();
    const end = Math.min(bytes.length, from + bytesATurn);
    for (let at = from; at < end; at += 1) {
      const byte = bytes[at] ?? 0;
      if (inText) {
        if (escaped) {
          escaped = false;
          if (byte === UNICODE && !(bytes[at + 1] === ZERO && bytes[at + 2] === ZERO)) wide = true;
        } else if (byte === BACKSLASH) escaped = true;
        else if (byte === QUOTE) inText = false;
        continue;
      }
      const kind = kinds[byte];
      if (kind === text) inText = true;
      else if (kind === close) depth -= 1;
      else if (kind === comma || kind === open) {
        values += 1;
        if (kind === open) depth += 1;
        if (depth > 1 + mostDepth)
          throw fail('malformed_request', { detail: `The JSON is nested deeper than ${mostDepth} levels.` });
        if (values > mostFields)
          throw fail('malformed_request', { detail: `The JSON has more than ${mostFields} values.` });
      }
    }
  }
  return { bytes, wide };
}
