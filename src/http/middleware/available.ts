import { fail } from '../../errors.ts';
import type { Health } from '../../ops/health.ts';
import type { Middleware } from '../context.ts';

/** 503 while the network is not warm yet and once the process is going down. */
export const available =
  (health: Health): Middleware =>
  async (_ctx, next) => {
    if (health.phase === 'starting')
      throw fail('service_unavailable', {
        reason: 'starting',
        detail: 'The service is starting up. Try again.',
        retryAfter: 5,
      });
    if (health.phase === 'stopping')
      throw fail('service_unavailable', {
        reason: 'stopping',
        detail: 'The service is shutting down. Try again.',
      });
    await next();
  };
