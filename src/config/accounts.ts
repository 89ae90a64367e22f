import { apiKey, token } from './parsers.ts';
import { optional, type Settings } from './types.ts';

export const accountsSettings = {
  apiKey: optional('CUTOUT_API_KEY', apiKey, { secret: true }).help(
    'Key of the local account, used when the account is created at the first start (default: a random one); `cutout run --server` and `cutout check --server` send it.',
  ),
  againstKey: optional('CUTOUT_AGAINST_KEY', token, { secret: true }).help(
    'Key of the service that `cutout check --against` compares with.',
  ),
  adminToken: optional('CUTOUT_ADMIN_TOKEN', apiKey, { secret: true }).help(
    'Operator token for the API under /admin/v1, which exists only if this is set.',
  ),
} as const satisfies Settings;
