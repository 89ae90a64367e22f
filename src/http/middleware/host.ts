import { fail } from '../../errors.ts';
import type { Middleware } from '../context.ts';

/** HTTP/1.1 demands the header (RFC 9112 section 3.2). node:http would refuse without it, but not in our words. */
export const host: Middleware = async ({ req }, next) => {
  if (req.httpVersion === '1.1' && req.headers.host === undefined)
    throw fail('malformed_request', { detail: 'The Host header is missing.' });
  await next();
};
