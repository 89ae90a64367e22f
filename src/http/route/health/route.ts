import { fail } from '../../../errors.ts';
import type { Health } from '../../../ops/health.ts';
import type { Middleware } from '../../context.ts';
import type { Route } from '../../router.ts';

interface Parts {
  readonly storesReachable: () => boolean;
  /** False while a network that was unloaded cannot be loaded again. */
  readonly networkUsable: () => boolean;
  readonly devices: () => Devices;
  /** What of the networks is being opened, and since when; parts of a sentence. */
  readonly opening: () => readonly string[];
}

/** GPUs that take images and GPUs that were lost; none of both without a GPU. */
export interface Devices {
  readonly ready: number;
  readonly lost: number;
}

/**
 * `live`: the process answers. `ready`: the network is warmed up and usable, a GPU works where there are any, the stores
 * can be read and written, and new work is accepted. Neither needs a key.
 */
export function healthRoutes(
  health: Health,
  { storesReachable, networkUsable, devices, opening }: Parts,
): Route[] {
  const live: Middleware = (ctx) => {
    ctx.body = { status: 'live' };
  };
  const ready: Middleware = (ctx) => {
    if (health.phase !== 'ready') {
      const what = health.phase === 'starting' ? opening() : [];
      const opens = what.length > 0 ? `: opening ${what.join('; ')}` : '';
      throw fail('service_unavailable', { detail: `The service is ${health.phase}${opens}.` });
    }
    if (!storesReachable())
      throw fail('service_unavailable', {
        detail: 'The service cannot read and write a store that it needs.',
      });
    if (!networkUsable())
      throw fail('service_unavailable', { detail: 'The service cannot load its network again.' });
    const { ready, lost } = devices();
    if (lost > 0 && ready === 0)
      throw fail('service_unavailable', { detail: 'The GPUs of the service do not answer.' });
    ctx.body = { status: 'ready', ...(ready > 0 && { devices: { ready, lost } }) };
  };
  return [
    { method: 'GET', paths: ['/health/live'], handlers: [live] },
    { method: 'GET', paths: ['/health/ready'], handlers: [ready] },
  ];
}
