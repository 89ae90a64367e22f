import { fail } from '../../../errors.ts';
import type { Health } from '../../../ops/health.ts';
import type { Middleware } from '../../context.ts';
import type { Route } from '../../router.ts';

interface Parts {
  readonly storesReachable: () => boolean;
  /** False while a network that was unloaded cannot be loaded again. */
  readonly networkUsable: () => boolean;
}

/**
 * `live`: the process answers. `ready`: the network is warmed up and usable, the stores can be reached, and new work is
 * accepted. Neither needs a key.
 */
export function healthRoutes(health: Health, { storesReachable, networkUsable }: Parts): Route[] {
  const live: Middleware = (ctx) => {
    ctx.body = { status: 'live' };
  };
  const ready: Middleware = (ctx) => {
    if (health.phase !== 'ready')
      throw fail('service_unavailable', { detail: `The service is ${health.phase}.` });
    if (!storesReachable())
      throw fail('service_unavailable', { detail: 'The service cannot reach a store that it needs.' });
    if (!networkUsable())
      throw fail('service_unavailable', { detail: 'The service cannot load its network again.' });
    ctx.body = { status: 'ready' };
  };
  return [
    { method: 'GET', paths: ['/health/live'], handlers: [live] },
    { method: 'GET', paths: ['/health/ready'], handlers: [ready] },
  ];
}
