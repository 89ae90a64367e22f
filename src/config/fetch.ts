import { UserError } from '../errors.ts';
import { integer, list, oneOf } from './parsers.ts';
import { type Settings, setting, type Values } from './types.ts';

/** A host as `new URL()` writes it, with an optional port. */
const fetchHost = (text: string): string => {
  const [, name = '', port] = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text.toLowerCase()) ?? [];
  if (new URL(`http://${name}`).host !== name) throw new Error();
  if (port !== undefined) integer(1, 65535)(port);
  return text.toLowerCase();
};

export const fetchSettings = {
  mode: setting('CUTOUT_FETCH', 'public', oneOf('off', 'listed', 'public')).help(
    'Hosts that image_url and bg_image_url may name: off, none; listed, those of CUTOUT_FETCH_ALLOW only; public, those and every public host.',
  ),
  allow: setting(
    'CUTOUT_FETCH_ALLOW',
    '',
    list(fetchHost, 'a comma-separated list of host names or addresses, each with an optional :port'),
  ).help(
    'Hosts that image_url may name even if their address is not public, for example minio.internal:9000. Without a port, those of CUTOUT_FETCH_PORTS apply.',
  ),
  ports: setting(
    'CUTOUT_FETCH_PORTS',
    '80,443',
    list(integer(1, 65535), 'a comma-separated list of ports from 1 to 65535'),
  ).help('Ports that image_url may name, besides those that CUTOUT_FETCH_ALLOW lists with a host.'),
  concurrency: setting('CUTOUT_FETCH_CONCURRENCY', '64', integer(0, 10_000)).help(
    'Concurrent downloads of this server; more are answered with 503. 0 is no limit.',
  ),
  accountConcurrency: setting('CUTOUT_FETCH_ACCOUNT_CONCURRENCY', '16', integer(0, 10_000)).help(
    'Concurrent downloads of one account; more are answered with 429. 0 is no limit.',
  ),
  failures: setting('CUTOUT_FETCH_FAILURES', '60', integer(0, 1_000_000)).help(
    'Failed downloads of one account allowed in a minute; further downloads have to wait. 0 is no limit.',
  ),
} as const satisfies Settings;

type FetchConfig = Values<typeof fetchSettings>;

/** Throws UserError. */
export function checkFetch({ mode, allow }: FetchConfig): void {
  if (mode === 'listed' && allow.length === 0)
    throw new UserError('CUTOUT_FETCH=listed requires CUTOUT_FETCH_ALLOW, which is not set.');
}
