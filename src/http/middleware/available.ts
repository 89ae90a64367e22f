import { fail } from '../../errors.ts';
import type { Health } from '../../ops/health.ts';
import type { Middleware } from '../context.ts';

/** 503 until the network is warmed up, and during shutdown. */
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
