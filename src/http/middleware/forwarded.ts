import type { Logger } from '../../ops/log.ts';
import type { Middleware } from '../context.ts';

/** How often the warning is repeated at most, milliseconds. */
const repeatMs = 3_600_000;

/**
 * What proxies say of a request. `X-Forwarded-Host` is believed of nobody: proxies that do not set it hand on what the
 * client sent, so it is taken away before anything reads it. `X-Forwarded-For` is Koa's business where proxies are
 * configured (`maxIpsCount`); where none is and it arrives all the same, the operator is warned.
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
          'X-Forwarded-For is sent but not trusted, because CUTOUT_PROXIES is 0: behind a proxy all clients share one address, and failed attempts of one client block all others. Set CUTOUT_PROXIES to the number of proxies in front.',
        );
      }
    }
    await next();
  };
}
