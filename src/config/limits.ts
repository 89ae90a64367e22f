import { auto, bytes, integer, showBytes } from './parsers.ts';
import { type Settings, setting } from './types.ts';

export const limitsSettings = {
  queueSeconds: setting('CUTOUT_QUEUE_SECONDS', '30', integer(0, 3600)).help(
    'Longest expected wait for admission in seconds; a request that would wait longer is answered with 503 at once. 0 is no limit.',
  ),
  memory: setting('CUTOUT_MEMORY_LIMIT', 'auto', auto(bytes), { show: showBytes }).help(
    'Memory that the process may use, for example 4G or 1500M; requests that do not fit at the moment are answered with 503, images that never can with 400. auto: the limit of its control group, else three quarters of the machine.',
  ),
  accountConcurrency: setting('CUTOUT_ACCOUNT_CONCURRENCY', '0', integer(0, 10_000)).help(
    'Concurrent requests of one account, waiting ones included; more are answered with 429. 0 is no limit.',
  ),
  rate: setting('CUTOUT_RATE_LIMIT', '500', integer(0, 1_000_000)).help(
    'Megapixels that one account may send in a minute, masks and background images included. 0 is no limit.',
  ),
} as const satisfies Settings;
