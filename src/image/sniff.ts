import { isUtf8 } from 'node:buffer';
import { type InputFormat, optionalFormats } from './types.ts';

type Matches = (bytes: Buffer) => boolean;

const at = (offset: number, text: string) => (bytes: Buffer) =>
  bytes.toString('latin1', offset, offset + text.length) === text;

/** ISO media files state their brands in the `ftyp` box: four letters at offset 8, more of them from 16 on. */
function brands(bytes: Buffer): readonly string[] {
  if (!at(4, 'ftyp')(bytes)) return [];
  const end = Math.min(bytes.length, bytes.readUInt32BE(0), 256);
  const found = [bytes.toString('latin1', 8, 12)];
  for (let i = 16; i + 4 <= end; i += 4) found.push(bytes.toString('latin1', i, i + 4));
  return found;
}

const brand =
  (...names: readonly string[]) =>
  (bytes: Buffer) =>
    brands(bytes).some((name) => names.includes(name));

const text = (pattern: RegExp) => (bytes: Buffer) => pattern.test(bytes.toString('latin1', 0, 512));

/** First match wins. Formats of `InputFormat` have its names; the others are here to be named in the error. */
const signatures: readonly (readonly [name: string, matches: Matches])[] = [
  ['jpeg', at(0, '\xff\xd8\xff')],
  ['png', at(0, '\x89PNG\r\n\x1a\n')],
  ['webp', (bytes) => at(0, 'RIFF')(bytes) && at(8, 'WEBP')(bytes)],
  ['gif', text(/^GIF8[79]a/)],
  ['tiff', text(/^(?:II[*+]\0|MM\0[*+])/)],
  ['avif', brand('avif', 'avis')],
  ['heic', brand('heic', 'heix', 'hevc', 'heim', 'heis', 'mif1', 'msf1')],
  ['mp4', at(4, 'ftyp')],
  ['jp2', at(4, 'jP  \r\n\x87\n')],
  ['jxl', (bytes) => at(0, '\xff\x0a')(bytes) || at(4, 'JXL \r\n\x87\n')(bytes)],
  ['bmp', at(0, 'BM')],
  ['ico', at(0, '\0\0\x01\0')],
  ['psd', at(0, '8BPS')],
  ['pdf', at(0, '%PDF')],
  ['zip', at(0, 'PK\x03\x04')],
  ['svg', text(/^(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]*?-->\s*)?<(?:!DOCTYPE )?svg/i)],
  ['html', text(/^(?:\xef\xbb\xbf)?\s*<(?:!DOCTYPE html|html)/i)],
  ['json', text(/^\s*[[{]\s*["\]}]/)],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: text has none of them
  ['text', (bytes) => isUtf8(bytes) && text(/^[^\0-\x08\x0b\x0e-\x1f]+$/)(bytes)],
];

const allInputFormats: readonly string[] = [
  'jpeg',
  'png',
  'webp',
  ...optionalFormats,
] satisfies InputFormat[];

export function isInputFormat(name: string): name is InputFormat {
  return allInputFormats.includes(name);
}

/** The type by the first bytes alone: an input format, the name of another one, `empty file` or `unknown`. */
export function sniff(bytes: Uint8Array): string {
  if (bytes.length === 0) return 'empty file';
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 512));
  return signatures.find(([, matches]) => matches(head))?.[0] ?? 'unknown';
}
