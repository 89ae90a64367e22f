import { excerpt, fail } from '../errors.ts';
import type { ImageFetch, UrlField } from './fetchImage.ts';
import type { Source } from './request.ts';

/**
 * Standard or URL-safe alphabet, padding optional, white space ignored, a leading `data:<type>;base64,`
 * dropped (CONTRACT section 3). Throws `failed_to_read_image` for anything else.
 */
export function decodeBase64(text: string, maxBytes: number): Buffer {
  const unreadable = (detail: string) => fail('failed_to_read_image', { detail });
  const start = /^\s*data:[^,]{0,200};base64,/i.exec(text)?.[0].length ?? 0;
  const digits = text
    .slice(start)
    .replace(/\s+/g, '')
    .replace(/={1,2}$/, '');
  if (digits === '') throw unreadable('The base64 text holds no data.');
  const foreign = /[^A-Za-z0-9+/_-]/.exec(digits);
  if (foreign) throw unreadable(`The text is not base64: it contains "${excerpt(foreign[0])}".`);
  if (digits.length % 4 === 1) throw unreadable('The base64 text is cut off.');
  if (Math.floor((digits.length * 3) / 4) > maxBytes) throw fail('file_too_large');
  return Buffer.from(digits, 'base64');
}

/** The bytes of the picture as they were sent. */
export async function loadSource(
  source: Source,
  { images, maxBytes, signal }: { images: ImageFetch; maxBytes: number; signal: AbortSignal },
  field: UrlField = 'image_url',
): Promise<Uint8Array> {
  if (source.kind === 'bytes') return source.bytes;
  if (source.kind === 'base64') return decodeBase64(source.text, maxBytes);
  return images.fetch(source.url, field, signal);
}
