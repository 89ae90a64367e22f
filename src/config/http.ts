import { integer, listenHost } from './parsers.ts';
import { optional, type Settings, setting } from './types.ts';

/** Scheme, host and port, as browsers write them. */
const origin = (text: string): string => {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || !['', '/'].includes(url.pathname) || url.search !== '')
    throw new Error('an address like https://cutout.example.com, without a path');
  return url.origin;
};

export const httpSettings = {
  host: setting('CUTOUT_HOST', '127.0.0.1', listenHost).help(
    'Address to listen on. 0.0.0.0 or :: accepts connections from other machines.',
  ),
  port: setting('CUTOUT_PORT', '8080', integer(0, 65535)).help('Port to listen on; 0 takes a free one.'),
  publicUrl: optional('CUTOUT_PUBLIC_URL', origin).help(
    'Public address of the service, for example https://cutout.example.com. Required for sign-in; https makes cookies Secure.',
  ),
  proxies: setting('CUTOUT_PROXIES', '0', integer(0, 10)).help(
    'Number of proxies in front of the service whose X-Forwarded-For is trusted.',
  ),
  timeout: setting('CUTOUT_TIMEOUT', '120', integer(1, 3600)).help(
    'Seconds a request may take, upload included; then it is answered with 504.',
  ),
  keepAlive: setting('CUTOUT_KEEP_ALIVE', '65', integer(5, 3600)).help(
    'Seconds that an idle connection is kept. Longer than a proxy in front keeps its own, else it may send a request while this end closes: nginx 60, AWS ALB 60, Google Cloud 600.',
  ),
  failedAttempts: setting('CUTOUT_FAILED_ATTEMPTS', '30', integer(0, 1_000_000)).help(
    'Unknown keys or failed sign-ins allowed from one address in a minute; further attempts have to wait. 0 is no limit.',
  ),
  drainSeconds: setting('CUTOUT_DRAIN_SECONDS', '0', integer(0, 3600)).help(
    'Seconds after SIGTERM in which requests are still answered while /health/ready is 503, so that a load balancer stops sending new ones.',
  ),
  stopTimeout: setting('CUTOUT_STOP_TIMEOUT', '30', integer(0, 3600)).help(
    'Seconds within which the process ends after SIGTERM, at least 5. Running requests are cut off 5 s before.',
  ),
} as const satisfies Settings;
