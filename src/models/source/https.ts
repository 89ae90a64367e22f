import { ModelError } from '../error.ts';
import type { Delivery, OpenSource } from './delivery.ts';

const MAX_REDIRECTS = 5;

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const refuse = (message: string, cause?: unknown) => new ModelError('MODEL_SOURCE', message, { cause });

/** Follows redirects itself, because fetch would also follow one to plain http. */
async function request(address: string, init: RequestInit, fetch: Fetch): Promise<Response> {
  let url = new URL(address);
  for (let redirects = 0; ; redirects++) {
    if (url.protocol !== 'https:') {
      throw refuse(`${address} leads to ${url.origin}: only https addresses are accepted.`);
    }
    const response = await fetch(url.href, { ...init, redirect: 'manual' });
    const location = response.headers.get('location');
    if (response.status < 300 || response.status > 399 || location === null) return response;
    await response.body?.cancel();
    if (redirects === MAX_REDIRECTS) throw refuse(`${address} redirects more than ${MAX_REDIRECTS} times.`);
    url = new URL(location, url);
  }
}

/** Returns the start of a 206 answer and length of the whole file; undefined if the answer does not state them. */
function contentRange(response: Response): { start: number; total: number } | undefined {
  const match = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get('content-range') ?? '');
  return match ? { start: Number(match[1]), total: Number(match[2]) } : undefined;
}

/** Returns what a resumed download is checked by; a weak ETag does not guarantee equal bytes, so it is not used. */
function validatorOf(response: Response): string | undefined {
  const etag = response.headers.get('etag');
  return (etag?.startsWith('W/') ? null : etag) ?? response.headers.get('last-modified') ?? undefined;
}

/**
 * Opens a file at an https address, resumed with Range and If-Range. `expectedBytes` is the length of the whole
 * file; an answer that announces another length is refused before it is read.
 */
export function httpsSource(address: string, expectedBytes: number, fetch: Fetch): OpenSource {
  return async ({ offset, validator }, signal): Promise<Delivery> => {
    const headers: Record<string, string> = { accept: '*/*', 'accept-encoding': 'identity' };
    if (offset > 0) {
      headers['range'] = `bytes=${offset}-`;
      if (validator !== undefined) headers['if-range'] = validator;
    }
    const response = await request(address, { headers, signal }, fetch);
    const range = response.status === 206 ? contentRange(response) : undefined;
    const length = response.headers.get('content-length');
    const total =
      range?.total ?? (response.status === 200 && length !== null ? Number(length) : expectedBytes);
    const usable = response.status === 200 || range?.start === offset;
    if (!usable || total !== expectedBytes || !response.body) {
      await response.body?.cancel();
      if (offset > 0 && (response.status === 206 || response.status === 416)) {
        // The existing part does not match the file at the address: the whole file is fetched again.
        return httpsSource(address, expectedBytes, fetch)({ offset: 0 }, signal);
      }
      throw usable && response.body
        ? refuse(`${address} holds ${total} bytes, expected ${expectedBytes}.`)
        : refuse(`${address} answered with status ${response.status}.`);
    }
    const found = validatorOf(response);
    return {
      offset: response.status === 206 ? offset : 0,
      // Taking the iterator locks the body. An unlocked body is cancelled, and ends without an error, when
      // its Response is garbage collected, which can happen before the first byte is read.
      bytes: response.body.values(),
      ...(found !== undefined && { validator: found }),
    };
  };
}
