import { absolutePath } from './parsers.ts';
import { optional, type Settings, setting, type Values } from './types.ts';

const postgresAddress = (text: string): string => {
  const url = URL.parse(text);
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length < 2)
    throw new Error('an address like postgres://user:password@host:5432/database');
  return text;
};

export const storeSettings = {
  dataDir: setting('CUTOUT_DATA_DIR', './data', absolutePath).help(
    'Folder of the database and, unless CUTOUT_MODELS_DIR is set, of the networks.',
  ),
  databaseUrl: optional('CUTOUT_DATABASE_URL', postgresAddress, { secret: true }).help(
    'PostgreSQL database of accounts and ledger, which several nodes may share: postgres://… (default: SQLite in the data folder).',
  ),
} as const satisfies Settings;

export type StoreConfig = Values<typeof storeSettings>;

const redisAddress = (text: string): string => {
  const url = URL.parse(text);
  if (!url || !/^rediss?:$/.test(url.protocol) || !/^(\/\d*)?$/.test(url.pathname) || url.hostname === '')
    throw new Error('an address like redis://user:password@host:6379/0, or rediss:// for TLS');
  return text;
};

export const redisSettings = {
  url: optional('CUTOUT_REDIS_URL', redisAddress, { secret: true }).help(
    'Redis 7 in which several nodes share cached results, requests in progress, limits and sessions: redis://user:password@host:6379/0. Not set: all of these stay in memory.',
  ),
} as const satisfies Settings;
