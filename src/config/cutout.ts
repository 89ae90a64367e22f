import { integer, list, oneOf } from './parsers.ts';
import { type Settings, setting, type Values } from './setting.ts';

export const cutoutSettings = {
  profile: setting(
    'CUTOUT_PROFILE',
    'balanced',
    oneOf('fast', 'balanced', 'best'),
    'What is traded for time: fast, balanced or best.',
  ),
  inputFormats: setting(
    'CUTOUT_INPUT_FORMATS',
    '',
    list(oneOf('avif', 'tiff', 'gif'), 'a comma-separated list of avif, tiff, gif'),
    'Input types to accept beside jpg, png and webp.',
  ),
  resultTtlSeconds: setting(
    'CUTOUT_KEEP_SECONDS',
    '600',
    integer(0, 86_400),
    'How long a result is kept, in memory or Redis, for a request that is repeated. 0 keeps nothing.',
  ),
  cacheMegabytes: setting(
    'CUTOUT_KEEP_MEGABYTES',
    '256',
    integer(1, 1_000_000),
    'Memory of all kept results together; the oldest goes first.',
  ),
} as const satisfies Settings;

export type CutoutConfig = Values<typeof cutoutSettings>;
