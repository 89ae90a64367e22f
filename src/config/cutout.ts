import { optionalFormats } from '../image/types.ts';
import { integer, list, oneOf } from './parsers.ts';
import { type Settings, setting, type Values } from './types.ts';

const extraFormats = list(
  oneOf(...optionalFormats),
  `a comma-separated list of ${optionalFormats.join(', ')}, or none`,
);

export const cutoutSettings = {
  profile: setting('CUTOUT_PROFILE', 'balanced', oneOf('fast', 'balanced', 'best')).help(
    'Trade-off between speed and quality: fast, balanced or best.',
  ),
  inputFormats: setting('CUTOUT_INPUT_FORMATS', 'avif,heic', (text) =>
    text === 'none' ? [] : extraFormats(text),
  ).help(
    'Input types that the API accepts beside jpg, png and webp: avif, heic, tiff, gif; none: no others. `cutout run` accepts all of them.',
  ),
  // CUTOUT_KEEP_* keep their names, because deployments set them.
  resultTtlSeconds: setting('CUTOUT_KEEP_SECONDS', '600', integer(0, 86_400)).help(
    'Seconds that a result is cached, in memory or Redis, for repeated requests. 0 caches nothing.',
  ),
  cacheMegabytes: setting('CUTOUT_KEEP_MEGABYTES', '256', integer(1, 1_000_000)).help(
    'Megabytes of memory for all cached results; the oldest are evicted first. Images encoded for points and boxes may take half as much beside them.',
  ),
} as const satisfies Settings;

export type CutoutConfig = Values<typeof cutoutSettings>;
