import { fail } from '../../../errors.ts';
import type { Health } from '../../../ops/health.ts';
import type { Middleware } from '../../context.ts';
import type { Route } from '../../router.ts';

/** What a server needs to accept new work. */
export interface ReadinessParts {
  readonly health: Health;
  /** Whether database and Redis can be reached; without them every image is answered with 503. */
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

/** Why no new work is accepted, in a sentence; undefined if the server is ready. */
export function whyNotReady({
  health,
  storesReachable,
  networkUsable,
  devices,
  opening,
}: ReadinessParts): string | undefined {
  if (health.phase !== 'ready') {
    const what = health.phase === 'starting' ? opening() : [];
    const opens = what.length > 0 ? `: opening ${what.join('; ')}` : '';
    return `The service is ${health.phase}${opens}.`;
  }
  if (!storesReachable()) return 'The service cannot read and write a store that it needs.';
  if (!networkUsable()) return 'The service cannot load its network again.';
  const { ready, lost } = devices();
  return lost > 0 && ready === 0 ? 'The GPUs of the service do not answer.' : undefined;
}

/**
 * `live`: the process answers. `ready`: the network is warmed up and usable, a GPU works where there are any, the stores
 * can be read and written, and new work is accepted. Neither needs a key.
 */
export function healthRoutes(parts: ReadinessParts): Route[] {
  const live: Middleware = (ctx) => {
    ctx.body = { status: 'live' };
  };
  const ready: Middleware = (ctx) => {
    const detail = whyNotReady(parts);
    if (detail !== undefined) throw fail('service_unavailable', { detail });
    const devices = parts.devices();
    ctx.body = { status: 'ready', ...(devices.ready > 0 && { devices }) };
  };
  return [
    { method: 'GET', paths: ['/health/live'], handlers: [live] },
    { method: 'GET', paths: ['/health/ready'], handlers: [ready] },
  ];
}
