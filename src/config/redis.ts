import { optional } from './parsers.ts';
import { type Settings, setting } from './types.ts';

const redisAddress = (text: string): string => {
  const url = URL.parse(text);
  if (!url || !/^rediss?:$/.test(url.protocol) || !/^(\/\d*)?$/.test(url.pathname) || url.hostname === '')
    throw new Error('an address like redis://user:password@host:6379/0, or rediss:// for TLS');
  return text;
};

export const redisSettings = {
  url: {
    ...setting(
      'CUTOUT_REDIS_URL',
      '',
      optional(redisAddress),
      'Redis 7 in which several nodes share cached results, requests in progress, limits and sessions: redis://user:password@host:6379/0. Not set: all of these stay in memory.',
    ),
    secret: true,
  },
} as const satisfies Settings;
