import { fail } from '../../../errors.ts';
import type { Health } from '../../../ops/health.ts';
import type { Middleware } from '../../context.ts';
import type { Route } from '../../router.ts';

/**
 * `live`: the process answers. `ready`: the network is warmed up, the stores can be reached, and new work is
 * accepted. Neither needs a key.
 */
export function healthRoutes(health: Health, storesReachable: () => boolean): Route[] {
  const live: Middleware = (ctx) => {
    ctx.body = { status: 'live' };
  };
  const ready: Middleware = (ctx) => {
    if (health.phase !== 'ready')
      throw fail('service_unavailable', { detail: `The service is ${health.phase}.` });
    if (!storesReachable())
      throw fail('service_unavailable', { detail: 'The service cannot reach a store that it needs.' });
    ctx.body = { status: 'ready' };
  };
  return [
    { method: 'GET', paths: ['/health/live'], handlers: [live] },
    { method: 'GET', paths: ['/health/ready'], handlers: [ready] },
  ];
}
