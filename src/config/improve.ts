import { integer, token, webAddress } from './parsers.ts';
import { optional, requireTogether, type Settings, setting, type Values } from './types.ts';

export const improveSettings = {
  perDay: setting('CUTOUT_IMPROVE_PER_DAY', '100', integer(0, 1_000_000)).help(
    'Images that an account may submit through /v1.0/improve on one day (UTC). 0 is no limit.',
  ),
  s3Endpoint: optional('CUTOUT_S3_ENDPOINT', webAddress).help(
    'S3 bucket for submitted images, instead of the folder "improve" in the data folder: https://s3.example.com/my-bucket.',
  ),
  s3Region: setting('CUTOUT_S3_REGION', 'us-east-1', token).help('Region of the S3 bucket.'),
  s3AccessKeyId: optional('CUTOUT_S3_ACCESS_KEY_ID', token).help('Access key id of the S3 bucket.'),
  s3SecretAccessKey: optional('CUTOUT_S3_SECRET_ACCESS_KEY', token, { secret: true }).help(
    'Secret access key of the S3 bucket.',
  ),
} as const satisfies Settings;

export type ImproveConfig = Values<typeof improveSettings> & {
  /** Folder of submitted images. */
  readonly folder: string;
};

/** Throws UserError. */
export function checkImprove(values: Values<typeof improveSettings>): void {
  requireTogether(improveSettings, values, ['s3Endpoint', 's3AccessKeyId', 's3SecretAccessKey']);
}
