import type { Logger } from '../../ops/log.ts';
import type { Middleware } from '../context.ts';

/** The minimum number of milliseconds between two warnings. */
const repeatMs = 3_600_000;

/**
 * Handles the headers of proxies. `X-Forwarded-Host` is never trusted: proxies that do not set it pass on
 * what the client sent, so it is removed before anything reads it. Koa evaluates `X-Forwarded-For` if proxies
 * are configured (`maxIpsCount`); if it arrives although none is, the operator is warned.
 */
export function forwarded(proxies: number, logger: Logger): Middleware {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return async ({ req }, next) => {
    delete req.headers['x-forwarded-host'];
    if (proxies === 0 && req.headers['x-forwarded-for'] !== undefined) {
      const now = performance.now();
      if (now - warnedAt >= repeatMs) {
        warnedAt = now;
        logger.warn(
          'X-Forwarded-For is sent but not trusted, because CUTOUT_PROXIES is 0: behind a proxy all clients share one address, and failed sign-ins of one client block those of all others. Set CUTOUT_PROXIES to the number of proxies in front.',
        );
      }
    }
    await next();
  };
}
