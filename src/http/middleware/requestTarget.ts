import { malformed } from '../../errors.ts';
import type { Context, Middleware } from '../context.ts';

/** Characters of the longest DNS name, and of a port. */
const longestHost = 261;

/** Koa parses the target when its path is first read, and throws for some that node:http accepts. */
function isReadable(ctx: Context): boolean {
  try {
    return ctx.path !== '';
  } catch {
    return false;
  }
}

/**
 * Refuses requests that node:http accepts and later middlewares cannot read: a target without a path, a `Host` that
 * is missing, repeated (RFC 9112 section 3.2) or too long. Those before it must not read `ctx.path`.
 */
export const checkTargetAndHost: Middleware = async (ctx, next) => {
  const { headers, httpVersion } = ctx.req;
  if (!isReadable(ctx))
    throw malformed('The request target is neither a path nor a URL: send one such as /v1.0/removebg.');
  if (httpVersion === '1.1' && headers.host === undefined) throw malformed('The Host header is missing.');
  // Two could be read as different names by a proxy and here.
  if (ctx.req.rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length > 1)
    throw malformed('There is more than one Host header.');
  if (headers.host !== undefined && headers.host.length > longestHost)
    throw malformed(
      `The Host header has ${headers.host.length} characters, at most ${longestHost} are accepted: send the name of this service.`,
    );
  await next();
};

/**
 * Repeated slashes in a path of the API count as one: a base address that ends in a slash gives `//v1.0/removebg`.
 * Other paths stay, because a proxy in front may guard them by their beginning.
 */
export const mergeSlashes: Middleware = async (ctx, next) => {
  if (ctx.path.includes('//')) {
    const merged = ctx.path.replace(/\/{2,}/g, '/');
    if (merged.startsWith('/v1.0/')) ctx.path = merged;
  }
  await next();
};
