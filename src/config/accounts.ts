import { apiKey, optional, token } from './parsers.ts';
import { type Settings, setting } from './types.ts';

export const accountsSettings = {
  apiKey: setting(
    'CUTOUT_API_KEY',
    '',
    optional(apiKey),
    'Key of the local account, used when the account is created at the first start (default: a random one); `cutout run --server` and `cutout check --server` send it.',
    { secret: true },
  ),
  againstKey: setting(
    'CUTOUT_AGAINST_KEY',
    '',
    optional(token),
    'Key of the service that `cutout check --against` compares with.',
    { secret: true },
  ),
  adminToken: setting(
    'CUTOUT_ADMIN_TOKEN',
    '',
    optional(apiKey),
    'Operator token for the API under /admin/v1, which exists only if this is set.',
    { secret: true },
  ),
} as const satisfies Settings;
