import { apiKey, optional } from './parsers.ts';
import { type Settings, setting } from './settingType.ts';

export const accountsSettings = {
  apiKey: {
    ...setting(
      'CUTOUT_API_KEY',
      '',
      optional(apiKey),
      'Key of the local account, used when the account is created at the first start (default: a random one); `cutout run --server` sends it.',
    ),
    secret: true,
  },
  adminToken: {
    ...setting(
      'CUTOUT_ADMIN_TOKEN',
      '',
      optional(apiKey),
      'Operator token for the API under /admin/v1, which exists only if this is set.',
    ),
    secret: true,
  },
} as const satisfies Settings;
