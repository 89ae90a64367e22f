import { type Middleware, setHeaders } from '../context.ts';

const methods = 'GET, POST, OPTIONS';
const requestHeaders = ['X-Api-Key', 'Authorization', 'Content-Type', 'Accept', 'Idempotency-Key'];
const exposed = [
  'X-Type',
  'X-Width',
  'X-Height',
  'X-Max-Width',
  'X-Max-Height',
  'X-Credits-Charged',
  'X-Foreground-Top',
  'X-Foreground-Left',
  'X-Foreground-Width',
  'X-Foreground-Height',
  'X-Uncertainty-Score',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'Retry-After',
  'X-Request-Id',
  'Idempotent-Replayed',
].join(', ');

/** The usual headers and those asked for; anything that is not a header name is dropped. */
function allowedHeaders(asked: string): string {
  const known = new Set(requestHeaders.map((name) => name.toLowerCase()));
  const more = asked
    .split(',')
    .map((name) => name.trim())
    .filter((name) => /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/.test(name) && !known.has(name.toLowerCase()));
  return [...requestHeaders, ...new Set(more)].slice(0, 50).join(', ');
}

/** Headers of every answer, so that pages of any origin can read it, errors included. */
export const corsHeaders: Readonly<Record<string, string>> = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': exposed,
};

export const cors: Middleware = async (ctx, next) => {
  setHeaders(ctx, corsHeaders);
  await next();
};

/** Answers OPTIONS on an existing path. Needs no key. */
export const preflight: Middleware = (ctx) => {
  ctx.remove('Access-Control-Expose-Headers');
  ctx.set('Access-Control-Allow-Methods', methods);
  ctx.set('Access-Control-Allow-Headers', allowedHeaders(ctx.get('Access-Control-Request-Headers')));
  ctx.set('Access-Control-Max-Age', '86400');
  ctx.status = 204;
};
