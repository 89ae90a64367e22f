import { setImmediate as turn } from 'node:timers/promises';
import { excerpt, fail } from '../errors.ts';
import type { ImageDownloads, UrlField } from './imageDownloads.ts';
import type { Source } from './request.ts';

const isDigit = new Uint8Array(128);
for (const digit of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_')
  isDigit[digit.charCodeAt(0)] = 1;
const isSpace = new Uint8Array(128);
for (const space of ' \t\n\v\f\r') isSpace[space.charCodeAt(0)] = 1;
const paddingCode = '='.charCodeAt(0);

/** Characters read before the event loop gets a turn. */
const charactersPerTurn = 2 * 1024 * 1024;

/**
 * Standard or URL-safe alphabet, padding optional, white space ignored, a leading `data:<type>;base64,`
 * dropped (docs/contract.md section 3). Rejects with `failed_to_read_image` for anything else, with the first position, from 1, that is not base64. Reads each character once,
 * because removing white space from many megabytes takes seconds, and yields to the event loop in between.
 */
async function decodeBase64(text: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  const unreadable = (detail: string) => fail('failed_to_read_image', { detail });
  const start = /^\s*data:[^,]{0,200};base64,/i.exec(text)?.[0].length ?? 0;
  /** Offsets at which the text may be cut: between whole groups of four digits. */
  const cuts = [start];
  let digits = 0;
  let padding = 0;
  let firstPadding = 0;
  for (let at = start, until = start + charactersPerTurn; at < text.length; at += 1) {
    if (at >= until && digits % 4 === 0) {
      cuts.push(at);
      until = at + charactersPerTurn;
      await turn();
      signal.throwIfAborted();
    }
    const code = text.charCodeAt(at);
    if (isDigit[code] && padding === 0) digits += 1;
    else if (code === paddingCode && padding < 2) {
      if (padding === 0) firstPadding = at;
      padding += 1;
    } else if (!isSpace[code]) {
      const wrong = padding > 0 ? firstPadding : at;
      throw unreadable(
        `The text is not base64: it contains "${excerpt(text.charAt(wrong))}" at position ${wrong + 1}.`,
      );
    }
  }
  if (digits === 0) throw unreadable('The base64 text is empty.');
  if (digits % 4 === 1)
    throw unreadable(
      `The base64 text is incomplete: it ends after ${digits} characters, one more than whole bytes have.`,
    );
  const size = Math.floor((digits * 3) / 4);
  if (size > maxBytes) throw fail('file_too_large');
  const bytes = Buffer.allocUnsafeSlow(size);
  let written = 0;
  for (const [i, from] of cuts.entries()) {
    await turn();
    signal.throwIfAborted();
    // Buffer.write skips white space too.
    written += bytes.write(text.slice(from, cuts[i + 1]), written, 'base64');
  }
  return bytes;
}

/**
 * The bytes of an image as they were sent, of its address from `downloads`. Rejects with an AppError, of `field` for an
 * address, or with the signal's reason.
 */
export async function readSource(
  source: Source,
  { downloads, maxBytes, signal }: { downloads: ImageDownloads; maxBytes: number; signal: AbortSignal },
  field: UrlField = 'image_url',
): Promise<Uint8Array> {
  if (source.kind === 'bytes') return source.bytes;
  if (source.kind === 'base64') return decodeBase64(source.text, maxBytes, signal);
  return downloads.fetch(source.url, field, signal);
}
